package epoch

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// DifferenceKind is the kind of a difference between a member and the desired state of a restored
// control plane.
type DifferenceKind string

const (
	// DifferenceOrphan means that the member has an object of this control plane that no Work
	// describes. The object was created after the backup.
	DifferenceOrphan DifferenceKind = "no Work wants it"
	// DifferenceDeletionHeld means that a Work is being deleted, but its object stays until a user
	// confirms the restore.
	DifferenceDeletionHeld DifferenceKind = "deletion held"
	// DifferenceRecreated means that the object was deleted after the backup, and the restored
	// control plane created the object again.
	DifferenceRecreated DifferenceKind = "made again"
	// DifferenceMissing means that a Work describes the object, but the object does not exist in
	// the member.
	DifferenceMissing DifferenceKind = "missing"
	// DifferenceNotApplied means that the member rejects the object that the Work describes.
	DifferenceNotApplied DifferenceKind = "not applied"
)

// Difference is one object of a member that differs from the desired state now, or that differed
// from the desired state after the restore.
type Difference struct {
	Kind   DifferenceKind   `json:"difference"`
	Object schema.GroupKind `json:"kind"`
	Key    ObjectKey        `json:"object"`
}

// ObjectKey is the namespace and name of an object in a cluster.
type ObjectKey struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// MemberObject is an object of a member with the labels of this control plane.
type MemberObject struct {
	Kind    schema.GroupKind
	Key     ObjectKey
	Work    types.NamespacedName
	Created time.Time
}

// objectID identifies an object of a member.
type objectID struct {
	kind schema.GroupKind
	key  ObjectKey
}

// Differences compares the Works of a cluster with the objects of this control plane in the
// cluster. wasListed reports whether the objects of a kind were listed in the member. Objects of
// kinds that were not listed are never reported as missing.
func Differences(e Epoch, works []workv1alpha1.Work, objects []MemberObject, wasListed func(schema.GroupKind) bool) []Difference {
	beganAt, err := time.Parse(time.RFC3339, e.BeganAt)
	restored := err == nil && e.Cause != CauseInstalled
	desired := desiredObjects(works)
	var found []Difference
	seen := map[objectID]bool{}
	for _, object := range objects {
		id := objectID{object.Kind, object.Key}
		seen[id] = true
		work, ok := desired[id]
		switch {
		case !ok:
			found = append(found, Difference{DifferenceOrphan, id.kind, id.key})
		case work.DeletionTimestamp == nil && restored && !object.Created.Before(beganAt) && work.CreationTimestamp.Time.Before(beganAt):
			found = append(found, Difference{DifferenceRecreated, id.kind, id.key})
		}
	}
	for id, work := range desired {
		switch {
		case work.DeletionTimestamp != nil:
			if conditions.HasStatus(work.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue) {
				found = append(found, Difference{DifferenceDeletionHeld, id.kind, id.key})
			}
		case wasListed(id.kind) && !seen[id]:
			found = append(found, Difference{DifferenceMissing, id.kind, id.key})
		case conditions.HasStatus(work.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse):
			found = append(found, Difference{DifferenceNotApplied, id.kind, id.key})
		}
	}
	slices.SortFunc(found, compareDifferences)
	return found
}

func compareDifferences(a, b Difference) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key.Namespace, b.Key.Namespace),
		cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.Key.Name, b.Key.Name))
}

// desiredObjects returns the objects that the Works describe. It ignores a Work that cannot be
// parsed.
func desiredObjects(works []workv1alpha1.Work) map[objectID]*workv1alpha1.Work {
	desired := map[objectID]*workv1alpha1.Work{}
	for i := range works {
		for _, raw := range works[i].Spec.Workload.Manifests {
			manifest, err := work.DecodeManifest(raw)
			if err != nil {
				continue
			}
			desired[objectID{manifest.GroupVersionKind().GroupKind(), ObjectKey{manifest.GetNamespace(), manifest.GetName()}}] = &works[i]
		}
	}
	return desired
}
