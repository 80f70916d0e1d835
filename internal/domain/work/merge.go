package work

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// overrideAnnotations are a Work's annotations that Merge removes when the desired Work does not have
// them.
var overrideAnnotations = []string{policyv1alpha1.AppliedClusterOverrides, policyv1alpha1.AppliedOverrides,
	policyv1alpha1.IneffectiveOverrides}

// Merge returns the stored Work with the desired state, and reports whether the result differs from the
// stored Work. If it does not differ, Merge returns the stored Work itself, else a copy.
//
// Merge keeps labels, annotations, finalizers and owners that other clients set, sorts the finalizers,
// and replaces the spec. It keeps the stored Work's permanent ID, because member objects have this ID
// as a label. A difference only in RenderedFromAnnotation does not change the Work.
func Merge(stored, desired *workv1alpha1.Work) (*workv1alpha1.Work, bool, error) {
	desired, err := withPermanentID(desired, stored.Labels[workv1alpha1.WorkPermanentIDLabel])
	if err != nil {
		return nil, false, err
	}
	result := *stored
	result.Labels = mergedMap(stored.Labels, desired.Labels)
	result.Annotations = maps.Clone(stored.Annotations)
	for _, record := range overrideAnnotations {
		delete(result.Annotations, record)
	}
	result.Annotations = mergedMap(result.Annotations, desired.Annotations)
	result.Finalizers = sortedUnion(stored.Finalizers, desired.Finalizers)
	result.OwnerReferences = mergedOwners(stored.OwnerReferences, desired.OwnerReferences)
	result.Spec = desired.Spec
	result.Spec.Workload.Manifests = keepStoredText(stored.Spec.Workload.Manifests, desired.Spec.Workload.Manifests)

	changed := !maps.Equal(result.Labels, stored.Labels) ||
		!maps.Equal(withoutRenderedFrom(result.Annotations), withoutRenderedFrom(stored.Annotations)) ||
		!slices.Equal(result.Finalizers, stored.Finalizers) ||
		!equality.Semantic.DeepEqual(result.OwnerReferences, stored.OwnerReferences) ||
		!sameSpec(&result.Spec, &stored.Spec)
	if !changed {
		return stored, false, nil
	}
	return result.DeepCopy(), true, nil
}

func withoutRenderedFrom(annotations map[string]string) map[string]string {
	rest := maps.Clone(annotations)
	delete(rest, workv1alpha1.RenderedFromAnnotation)
	return rest
}

// sameSpec reports whether both specs are equal. It compares manifests as texts, because reflection
// would compare them byte by byte and take most of the time of a pass that changes nothing.
func sameSpec(a, b *workv1alpha1.WorkSpec) bool {
	sameText := func(x, y workv1alpha1.Manifest) bool { return bytes.Equal(x.Raw, y.Raw) }
	left, right := *a, *b
	left.Workload.Manifests, right.Workload.Manifests = nil, nil
	return slices.EqualFunc(a.Workload.Manifests, b.Workload.Manifests, sameText) && equality.Semantic.DeepEqual(left, right)
}

// HasBinding reports whether a binding owns the Work. An object such as a Namespace is propagated to
// every cluster without a policy. If a policy selects it too, there is still only one Work. The binding
// then takes precedence: the controller that propagates the object without a policy does not render the
// Work.
func HasBinding(stored *workv1alpha1.Work) bool {
	return stored.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] != "" ||
		stored.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel] != ""
}

// withPermanentID returns the desired Work with the stored Work's permanent ID, if the stored Work has
// an ID. Usually the desired Work was already rendered with that ID, so nothing changes.
func withPermanentID(desired *workv1alpha1.Work, id string) (*workv1alpha1.Work, error) {
	if id == "" || id == desired.Labels[workv1alpha1.WorkPermanentIDLabel] {
		return desired, nil
	}
	adopted := desired.DeepCopy()
	addLabels(adopted, map[string]string{workv1alpha1.WorkPermanentIDLabel: id})
	if err := prepareManifests(adopted, id); err != nil {
		return nil, err
	}
	return adopted, nil
}

// PrepareForStorage prepares a new or changed Work, in place, for storage. If the Work has no permanent
// ID, it sets the ID that newID returns. It prunes the manifests, and adds the ID and the lists of
// managed labels and annotations to them. It does not change a Work that was rendered with an ID,
// because such a Work is already complete.
func PrepareForStorage(work *workv1alpha1.Work, newID func() string) error {
	id := work.Labels[workv1alpha1.WorkPermanentIDLabel]
	if id == "" {
		id = newID()
		addLabels(work, map[string]string{workv1alpha1.WorkPermanentIDLabel: id})
	}
	return prepareManifests(work, id)
}

func prepareManifests(work *workv1alpha1.Work, id string) error {
	for i, manifest := range work.Spec.Workload.Manifests {
		object, err := DecodeManifest(manifest)
		if err != nil {
			return fmt.Errorf("completing manifest %d: %w", i, err)
		}
		before := object.DeepCopy()
		Prune(object)
		labels := mergedMap(object.GetLabels(), map[string]string{workv1alpha1.WorkPermanentIDLabel: id})
		setMetadata(object, labels, object.GetAnnotations())
		if jsonedit.EqualFields(before.Object, object.Object) {
			continue
		}
		if work.Spec.Workload.Manifests[i], err = EncodeManifest(object); err != nil {
			return fmt.Errorf("completing manifest %d: %w", i, err)
		}
	}
	return nil
}

// keepStoredText keeps the stored text of every manifest that equals the desired manifest, because
// different writers may encode the same object differently.
func keepStoredText(stored, desired []workv1alpha1.Manifest) []workv1alpha1.Manifest {
	if len(stored) != len(desired) {
		return desired
	}
	kept := slices.Clone(desired)
	for i := range kept {
		if equalManifests(stored[i], kept[i]) {
			kept[i] = stored[i]
		}
	}
	return kept
}

func equalManifests(a, b workv1alpha1.Manifest) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	left, err := DecodeManifest(a)
	if err != nil {
		return false
	}
	right, err := DecodeManifest(b)
	if err != nil {
		return false
	}
	return jsonedit.EqualFields(left.Object, right.Object)
}

// sortedUnion returns the sorted union without duplicates. It returns nil if the union is empty.
func sortedUnion(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// mergedOwners returns the current owners, in which each desired owner replaces the entry of the same
// owner or is appended.
func mergedOwners(present, desired []metav1.OwnerReference) []metav1.OwnerReference {
	all := slices.Clone(present)
	for _, owner := range desired {
		at := slices.IndexFunc(all, func(existing metav1.OwnerReference) bool { return existing.UID == owner.UID })
		if at < 0 {
			all = append(all, owner)
			continue
		}
		all[at] = owner
	}
	return all
}
