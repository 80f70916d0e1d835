package work

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// records are annotations of a Work that are either current or absent.
var records = []string{policyv1alpha1.AppliedClusterOverrides, policyv1alpha1.AppliedOverrides}

// Merge is the stored Work brought to the desired state, and whether that differs
// from the stored one. Labels, annotations, finalizers and owners that others put
// there stay; finalizers are sorted; the spec is replaced. The permanent id of the
// stored Work stays, for member objects bear it.
func Merge(stored, desired *workv1alpha1.Work) (*workv1alpha1.Work, bool, error) {
	desired, err := adopt(desired, stored.Labels[workv1alpha1.WorkPermanentIDLabel])
	if err != nil {
		return nil, false, err
	}
	result := stored.DeepCopy()
	result.Labels = merged(stored.Labels, desired.Labels)
	for _, record := range records {
		delete(result.Annotations, record)
	}
	result.Annotations = merged(result.Annotations, desired.Annotations)
	result.Finalizers = union(stored.Finalizers, desired.Finalizers)
	result.OwnerReferences = owners(stored.OwnerReferences, desired.OwnerReferences)
	result.Spec = *desired.Spec.DeepCopy()
	result.Spec.Workload.Manifests = settle(stored.Spec.Workload.Manifests, result.Spec.Workload.Manifests)

	changed := !maps.Equal(result.Labels, stored.Labels) ||
		!maps.Equal(result.Annotations, stored.Annotations) ||
		!slices.Equal(result.Finalizers, stored.Finalizers) ||
		!equality.Semantic.DeepEqual(result.OwnerReferences, stored.OwnerReferences) ||
		!sameSpec(&result.Spec, &stored.Spec)
	if !changed {
		return stored.DeepCopy(), false, nil
	}
	return result, true, nil
}

// sameSpec compares manifests as texts: comparing them byte by byte through
// reflection would be most of what a pass costs that finds nothing to do.
func sameSpec(a, b *workv1alpha1.WorkSpec) bool {
	sameText := func(x, y workv1alpha1.Manifest) bool { return bytes.Equal(x.Raw, y.Raw) }
	left, right := *a, *b
	left.Workload.Manifests, right.Workload.Manifests = nil, nil
	return slices.EqualFunc(a.Workload.Manifests, b.Workload.Manifests, sameText) && equality.Semantic.DeepEqual(left, right)
}

// Bound tells whether a binding keeps the Work. An object that is propagated
// without a policy and also selected by one has a single Work for both; the
// binding's wins, the other stays out.
func Bound(stored *workv1alpha1.Work) bool {
	return stored.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] != "" ||
		stored.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel] != ""
}

// adopt is desired under the permanent id of the stored Work, if that has one.
// Usually it was rendered with it, and there is nothing to do.
func adopt(desired *workv1alpha1.Work, id string) (*workv1alpha1.Work, error) {
	if id == "" || id == desired.Labels[workv1alpha1.WorkPermanentIDLabel] {
		return desired, nil
	}
	adopted := desired.DeepCopy()
	addLabels(adopted, map[string]string{workv1alpha1.WorkPermanentIDLabel: id})
	if err := completeManifests(adopted, id); err != nil {
		return nil, err
	}
	return adopted, nil
}

// Complete does, in place, what every Work needs before it is stored, whoever made
// it: a permanent id, taken from newID if it has none, and manifests that are
// pruned and bear the id and the lists of their labels and annotations. Works
// that were rendered with an id are complete and stay as they are, byte for byte.
func Complete(work *workv1alpha1.Work, newID func() string) error {
	id := work.Labels[workv1alpha1.WorkPermanentIDLabel]
	if id == "" {
		id = newID()
		addLabels(work, map[string]string{workv1alpha1.WorkPermanentIDLabel: id})
	}
	return completeManifests(work, id)
}

func completeManifests(work *workv1alpha1.Work, id string) error {
	for i, manifest := range work.Spec.Workload.Manifests {
		object, err := Decode(manifest)
		if err != nil {
			return fmt.Errorf("completing manifest %d: %w", i, err)
		}
		before := object.DeepCopy()
		Prune(object)
		addLabels(object, map[string]string{workv1alpha1.WorkPermanentIDLabel: id})
		markManaged(object)
		if reflect.DeepEqual(before.Object, object.Object) {
			continue
		}
		if work.Spec.Workload.Manifests[i], err = Encode(object); err != nil {
			return fmt.Errorf("completing manifest %d: %w", i, err)
		}
	}
	return nil
}

// settle keeps the stored text of every manifest that means the same as the
// desired one, since two writers may lay out one object differently.
func settle(stored, desired []workv1alpha1.Manifest) []workv1alpha1.Manifest {
	if len(stored) != len(desired) {
		return desired
	}
	for i := range desired {
		if equivalent(stored[i], desired[i]) {
			desired[i] = *stored[i].DeepCopy()
		}
	}
	return desired
}

func equivalent(a, b workv1alpha1.Manifest) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	left, err := Decode(a)
	if err != nil {
		return false
	}
	right, err := Decode(b)
	if err != nil {
		return false
	}
	return reflect.DeepEqual(left.Object, right.Object)
}

// union is sorted and without duplicates; nil when empty.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// owners are the present ones, with the desired ones replaced or appended.
func owners(present, desired []metav1.OwnerReference) []metav1.OwnerReference {
	all := slices.Clone(present)
	for _, owner := range desired {
		at := slices.IndexFunc(all, func(one metav1.OwnerReference) bool { return one.UID == owner.UID })
		if at < 0 {
			all = append(all, owner)
			continue
		}
		all[at] = owner
	}
	return all
}
