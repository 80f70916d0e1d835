// Package dependency answers: what does an object need beside it, and what has to
// be said on the bindings of those things so that they follow it to its clusters?
//
// Words. The binding of an object that needs others, with spec.propagateDeps, is
// the dependent. The binding of a thing that is needed is attached: it lists its
// dependents, with their clusters, in spec.requiredBy, and goes where they go. It
// is the one binding that the thing has, whoever made it: a policy may claim the
// thing as well, and then the binding goes where both want it.
//
// Invariants:
//   - what a policy decides about a binding is left to the policy;
//   - several dependents share one binding, in any order of their coming and
//     going: what they leave behind depends on those that remain alone;
//   - a binding is needless only when nothing at all says where it should go;
//   - references are sorted, so that the same needs make the same text.
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
	"karmada.io/karmada/internal/domain/reach"
)

// Reference points to an object by name or, without one, to all objects that a
// label selector matches.
type Reference = configv1alpha1.DependentObjectReference

// References are what a template needs, each once and sorted, made from what an
// interpreter found. The template itself is left out, and so is what belongs to
// the control plane: nothing in its namespaces is ever propagated. The arguments
// are not modified.
func References(template *unstructured.Unstructured, found []Reference) []Reference {
	var references []Reference
	for i := range found {
		reference := *found[i].DeepCopy()
		if reference.Name != "" {
			// A name makes the selector meaningless.
			reference.LabelSelector = nil
		}
		if reach.IsReservedNamespace(reference.Namespace) || isSelf(template, reference) {
			continue
		}
		references = append(references, reference)
	}
	slices.SortFunc(references, Compare)
	return slices.CompactFunc(references, func(a, b Reference) bool { return Compare(a, b) == 0 })
}

// Within splits references into those whose objects may follow the party's object, and
// a refusal for each other one. What the party refers to but must not take along is
// not attached; what follows it already is left as it is.
func Within(party reach.Party, references []Reference) (within []Reference, refused []*reach.RefusedError) {
	for i := range references {
		if refusal := party.TakesAlong(references[i].Kind, types.NamespacedName{Namespace: references[i].Namespace, Name: references[i].Name}); refusal != nil {
			refused = append(refused, refusal)
			continue
		}
		within = append(within, references[i])
	}
	return within, refused
}

func isSelf(template *unstructured.Unstructured, reference Reference) bool {
	return reference.Name == template.GetName() && reference.Namespace == template.GetNamespace() &&
		KindOf(reference).GroupKind() == template.GroupVersionKind().GroupKind()
}

// Compare is the order of references. Two that mean the same are equal.
func Compare(a, b Reference) int {
	return cmp.Or(
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(metav1.FormatLabelSelector(a.LabelSelector), metav1.FormatLabelSelector(b.LabelSelector)),
	)
}

// KindOf is the kind that a reference points to.
func KindOf(reference Reference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
}

// Thing names an object whatever API version it is read in.
type Thing struct {
	Kind schema.GroupKind
	Key  types.NamespacedName
}

// Matches reports whether a reference points to an object that exists and has
// those labels. Without a name or a valid selector it points to nothing.
func Matches(reference Reference, thing Thing, marks map[string]string) bool {
	if !Near(reference, thing) {
		return false
	}
	if reference.Name != "" {
		return reference.Name == thing.Key.Name
	}
	selector := SelectorOf(reference)
	return selector != nil && selector.Matches(labels.Set(marks))
}

// Near reports whether a reference points to objects of the thing's kind and
// place, so that name or labels decide.
func Near(reference Reference, thing Thing) bool {
	return KindOf(reference).GroupKind() == thing.Kind && reference.Namespace == thing.Key.Namespace
}

// SelectorOf is the selector of a reference without a name; nil for one with a
// name and for one that selects nothing.
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
