package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
)

// GeneratedName returns the name of the policy that karmadactl creates for one object: the
// name of the object and a hash of its kind and namespace. namespace is empty for a
// cluster-scoped object. The name is always the same for the same object.
func GeneratedName(kind schema.GroupVersionKind, namespace, name string) string {
	return generatedName(kind.String(), namespace, name)
}

func generatedName(kind, namespace, name string) string {
	return binding.NameWithSuffix(name, binding.ShortHash(namespace+kind))
}

// UnambiguousName returns the name of the policy for one object if a policy for another object has
// the generated name. It contains a hash of the exact name of the object, because generated names
// are equal for "a:b" and "a.b", and for names that differ only in capital letters.
func UnambiguousName(kind schema.GroupVersionKind, namespace, name string) string {
	return binding.NameWithSuffix(name, binding.ShortHash(name)+"-"+binding.ShortHash(namespace+kind.String()))
}

// SelectsByName reports whether one of the selectors selects an object by its name.
func SelectsByName(selectors []policyv1alpha1.ResourceSelector, kind schema.GroupVersionKind, namespace, name string) bool {
	return slices.ContainsFunc(selectors, func(selector policyv1alpha1.ResourceSelector) bool {
		return selector.Name == name && selector.Kind == kind.Kind && selector.APIVersion == kind.GroupVersion().String() &&
			(selector.Namespace == namespace || selector.Namespace == "")
	})
}

// SelectsObjectByName reports whether a stored policy of either kind selects an object by its name.
// Otherwise the policy belongs to another object, and must not be overwritten.
func SelectsObjectByName(stored runtime.Object, kind schema.GroupVersionKind, namespace, name string) bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return false
	}
	typed := &policyv1alpha1.PropagationPolicy{} // the selectors of both kinds of policies are equal
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		return false
	}
	return SelectsByName(typed.Spec.ResourceSelectors, kind, namespace, name)
}
