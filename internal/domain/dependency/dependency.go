// Package dependency determines the objects on which a template depends, and how these dependencies'
// bindings must change so that the dependencies reach the same clusters as the template.
//
// Terms: a dependent is the binding of a template that depends on other objects and sets
// spec.propagateDeps. A dependency's binding is called attached. It lists its dependents with their
// clusters in spec.requiredBy, and the dependency is propagated to these clusters. An object has only
// one binding. If a policy claims the object as well, the object is propagated to the policy's clusters
// and to the dependents' clusters.
//
// Invariants:
//   - If a policy claims an attached binding, the settings that the policy sets are not changed.
//   - Several dependents share one binding and may be added and removed in any order. The result
//     depends only on the remaining dependents.
//   - A binding is unneeded only if nothing selects clusters for it.
//   - References are sorted, so that equal references are encoded as equal text.
package dependency

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/tenancy"
)

// Reference refers to one object by name or, without a name, to all objects that a label selector
// matches.
type Reference = configv1alpha1.DependentObjectReference

// References returns the template's dependencies, sorted and without duplicates. found are the
// references that the interpreter returned. The result omits the template itself and objects in the
// control plane's namespaces, because these are never propagated. The arguments are not modified.
func References(template *unstructured.Unstructured, found []Reference) []Reference {
	var references []Reference
	for i := range found {
		reference := *found[i].DeepCopy()
		if reference.Name != "" {
			// If a reference has a name, its selector has no effect.
			reference.LabelSelector = nil
		}
		if tenancy.IsReservedNamespace(reference.Namespace) || refersToItself(template, reference) {
			continue
		}
		references = append(references, reference)
	}
	slices.SortFunc(references, CompareReferences)
	return slices.CompactFunc(references, func(a, b Reference) bool { return CompareReferences(a, b) == 0 })
}

// FilterAllowed returns the references that the author may propagate, and an error for each forbidden
// reference. Forbidden references are not attached. Objects that are already attached stay attached.
func FilterAllowed(author tenancy.Author, references []Reference) (allowed []Reference, forbidden []*tenancy.ForbiddenError) {
	for i := range references {
		if refusal := author.CheckDependency(references[i].Kind,
			types.NamespacedName{Namespace: references[i].Namespace, Name: references[i].Name}); refusal != nil {
			forbidden = append(forbidden, refusal)
			continue
		}
		allowed = append(allowed, references[i])
	}
	return allowed, forbidden
}

func refersToItself(template *unstructured.Unstructured, reference Reference) bool {
	return reference.Name == template.GetName() && reference.Namespace == template.GetNamespace() &&
		ReferencedKind(reference).GroupKind() == template.GroupVersionKind().GroupKind()
}

// CompareReferences compares references for sorting. It returns 0 for references with the same meaning.
func CompareReferences(a, b Reference) int {
	return cmp.Or(
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(metav1.FormatLabelSelector(a.LabelSelector), metav1.FormatLabelSelector(b.LabelSelector)),
	)
}

// ReferencedKind returns the kind of the referenced object.
func ReferencedKind(reference Reference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
}

// ObjectID identifies an object regardless of its API version.
type ObjectID struct {
	Kind schema.GroupKind
	Key  types.NamespacedName
}

// Matches reports whether the reference refers to an existing object with the given labels. A reference
// without a name and without a valid selector refers to nothing.
func Matches(reference Reference, object ObjectID, objectLabels map[string]string) bool {
	if !MatchesKindAndNamespace(reference, object) {
		return false
	}
	if reference.Name != "" {
		return reference.Name == object.Key.Name
	}
	selector := SelectorOf(reference)
	return selector != nil && selector.Matches(labels.Set(objectLabels))
}

// MatchesKindAndNamespace reports whether the reference has the object's kind and namespace.
func MatchesKindAndNamespace(reference Reference, object ObjectID) bool {
	return ReferencedKind(reference).GroupKind() == object.Kind && reference.Namespace == object.Key.Namespace
}

// SelectorOf returns the selector of a reference without a name. It returns nil if the reference has a
// name or its selector is invalid.
func SelectorOf(reference Reference) labels.Selector {
	if reference.Name != "" || reference.LabelSelector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(reference.LabelSelector)
	if err != nil {
		return nil
	}
	return selector
}
