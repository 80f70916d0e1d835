package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
)

// GeneratedName returns the name of the policy that karmadactl creates for an object, which consists of
// the object's name and a hash of its kind and namespace. namespace is empty for a cluster-scoped
// object.
func GeneratedName(kind schema.GroupVersionKind, namespace, name string) string {
	return generatedName(kind.String(), namespace, name)
}

func generatedName(kind, namespace, name string) string {
	return binding.NameWithSuffix(name, binding.ShortHash(namespace+kind))
}

// UnambiguousName returns the policy name to use if a policy for another object already has the
// generated name. It contains a hash of the object's exact name, because the generated names of "a:b"
// and "a.b", and of names that differ only in letter case, are equal.
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

// SelectsObjectByName reports whether the stored policy, of either kind, selects the object by name. If
// not, the policy belongs to another object and must not be overwritten.
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
