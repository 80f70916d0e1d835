package simulation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/policy"
)

// bindingKey identifies a binding.
type bindingKey struct {
	types.NamespacedName
	namespaced bool
}

func keyOf(bound binding.Object) bindingKey {
	return bindingKey{types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()}, binding.IsNamespaced(bound)}
}

// groupKey identifies a workload affinity group.
type groupKey struct{ namespace, key string }

// subject is one object whose clusters are simulated.
type subject struct {
	// resource refers to the template. policy names the policy that claims the template after the changes.
	resource workv1alpha2.ObjectReference
	policy   string
	// before is the stored binding, or nil. bound is the binding after the changes, or nil. Both are the
	// same object until edit copies it.
	before, bound binding.Object
	// labels are the template's labels, and dependencies the objects that are propagated with it. They are set
	// only if this simulation changes the binding.
	labels       map[string]string
	dependencies []dependency.Reference
	// isSelected reports whether the subject is part of the result.
	isSelected bool
	// waiting is the reason why the scheduler does not place the object, and failure is the reason why
	// it cannot place the object as wanted.
	waiting, failure finding
	// trigger is the rule by which the scheduler places the object again.
	trigger string
	// affinityGroup is the cluster affinity group in use after the scheduling. remarks describe groups that
	// do not fit, and clusters that do not exist.
	affinityGroup string
	remarks       []string
	// leaving contains the reason why the object leaves a cluster, by cluster name.
	leaving map[string]string
}

// finding is a machine-readable reason with a message for users. The zero value means that there is no finding.
type finding struct{ reason, message string }

func newSubject(bound binding.Object, isSelected bool) *subject {
	s := &subject{resource: bound.BindingSpec().Resource, before: bound, bound: bound, isSelected: isSelected, leaving: map[string]string{}}
	if claim, claimed := policy.ClaimedBy(bound); claimed {
		s.policy = claim.DisplayName()
	}
	return s
}

// edit returns the binding for changes. On first use, it copies the stored binding, which stays unchanged.
func (s *subject) edit() binding.Object {
	if s.bound != nil && s.bound == s.before {
		s.bound = binding.Copy(s.before)
	}
	return s.bound
}

// sortSubjects sorts the subjects by the namespace and name of their binding, ResourceBindings first.
func (s *simulator) sortSubjects() {
	keys := make([]bindingKey, 0, len(s.subjects))
	for key := range s.subjects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b bindingKey) int {
		if a.namespaced != b.namespaced {
			if a.namespaced {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, key := range keys {
		each := s.subjects[key]
		s.sorted = append(s.sorted, each)
		if each.bound == nil {
			continue
		}
		for _, group := range placement.WorkloadGroupKeys(each.bound) {
			at := groupKey{key.Namespace, group}
			s.groups[at] = append(s.groups[at], each)
		}
	}
}

// selectAttached selects the bindings that follow a selected binding.
func (s *simulator) selectAttached() {
	for _, each := range s.sorted {
		if each.isSelected || each.bound == nil {
			continue
		}
		each.isSelected = slices.ContainsFunc(each.bound.BindingSpec().RequiredBy, func(by workv1alpha2.BindingSnapshot) bool {
			dependent := s.dependentOf(by)
			return dependent != nil && dependent.isSelected
		})
	}
}

// dependentOf returns the subject to which the entry of spec.requiredBy refers, or nil.
func (s *simulator) dependentOf(by workv1alpha2.BindingSnapshot) *subject {
	return s.subjects[bindingKey{types.NamespacedName{Namespace: by.Namespace, Name: by.Name}, true}]
}
