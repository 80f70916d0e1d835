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

// Kind of a difference between a member and what a restored control plane wants.
type Kind string

const (
	// Orphan says that the member holds an object of ours that no Work wants. It was created after
	// the backup.
	Orphan Kind = "no Work wants it"
	// Held says that a Work is being deleted, and its object stays until the confirmation.
	Held Kind = "deletion held"
	// MadeAgain says that the object was deleted after the backup, and the restored control plane
	// made it again.
	MadeAgain Kind = "made again"
	// Missing says that a Work wants the object, and the member does not have it.
	Missing Kind = "missing"
	// NotApplied says that the member refuses the object as its Work wants it.
	NotApplied Kind = "not applied"
)

// Difference is one object of a member that is not as the control plane wants it, or was
// not after the restore.
type Difference struct {
	Kind   Kind             `json:"difference"`
	Object schema.GroupKind `json:"kind"`
	Key    Key              `json:"object"`
}

// Key names an object in a cluster.
type Key struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// MemberObject is an object of a member that bears our marks.
type MemberObject struct {
	Kind    schema.GroupKind
	Key     Key
	Work    types.NamespacedName
	Created time.Time
}

// place is an object of a member.
type place struct {
	kind schema.GroupKind
	key  Key
}

// Differences compares the Works of a cluster with the objects of ours in it. asked are
// the kinds that the member was asked for; of others nothing is known to be missing.
func Differences(e Epoch, works []workv1alpha1.Work, objects []MemberObject, asked func(schema.GroupKind) bool) []Difference {
	began, err := time.Parse(time.RFC3339, e.Began)
	restored := err == nil && e.Cause != Installed
	wanted := wantedBy(works)
	var found []Difference
	seen := map[place]bool{}
	for _, object := range objects {
		at := place{object.Kind, object.Key}
		seen[at] = true
		of, ok := wanted[at]
		switch {
		case !ok:
			found = append(found, Difference{Orphan, at.kind, at.key})
		case of.DeletionTimestamp == nil && restored && !object.Created.Before(began) && of.CreationTimestamp.Time.Before(began):
			found = append(found, Difference{MadeAgain, at.kind, at.key})
		}
	}
	for at, of := range wanted {
		switch {
		case of.DeletionTimestamp != nil:
			if conditions.Is(of.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue) {
				found = append(found, Difference{Held, at.kind, at.key})
			}
		case asked(at.kind) && !seen[at]:
			found = append(found, Difference{Missing, at.kind, at.key})
		case conditions.Is(of.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse):
			found = append(found, Difference{NotApplied, at.kind, at.key})
		}
	}
	slices.SortFunc(found, compare)
	return found
}

func compare(a, b Difference) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key.Namespace, b.Key.Namespace),
		cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.Key.Name, b.Key.Name))
}

// wantedBy are the objects that Works hold. A Work that cannot be read wants nothing.
func wantedBy(works []workv1alpha1.Work) map[place]*workv1alpha1.Work {
	wanted := map[place]*workv1alpha1.Work{}
	for i := range works {
		for _, raw := range works[i].Spec.Workload.Manifests {
			manifest, err := work.Decode(raw)
			if err != nil {
				continue
			}
			wanted[place{manifest.GroupVersionKind().GroupKind(), Key{manifest.GetNamespace(), manifest.GetName()}}] = &works[i]
		}
	}
	return wanted
}
