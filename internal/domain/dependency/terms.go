package dependency

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// Terms are what a binding without a policy takes over from its dependents.
type Terms struct {
	ConflictResolution          policyv1alpha1.ConflictResolution
	PreserveResourcesOnDeletion bool
}

// TermsOf unites what dependents of an object say, in no order: Overwrite goes before
// Abort and to preserve before to delete, so that no dependent misses what it
// counts on. Overwrite counts only of dependents that may take the object over.
func TermsOf(object workv1alpha2.ObjectReference, dependents []*workv1alpha2.ResourceBinding) Terms {
	terms := Terms{ConflictResolution: policyv1alpha1.ConflictAbort}
	overwrites := overwritesOf(object)
	for _, dependent := range dependents {
		if overwrites(dependent) {
			terms.ConflictResolution = policyv1alpha1.ConflictOverwrite
		}
		terms.PreserveResourcesOnDeletion = terms.PreserveResourcesOnDeletion || preserves(dependent)
	}
	return terms
}

// Disagreement tells, in the same words whatever the order, in what dependents
// differ; nil when they agree.
func Disagreement(object workv1alpha2.ObjectReference, dependents []*workv1alpha2.ResourceBinding) error {
	terms := TermsOf(object, dependents)
	overwrites := overwritesOf(object)
	var parts []string
	if over, others := split(dependents, overwrites); len(over) > 0 && len(others) > 0 {
		parts = append(parts, fmt.Sprintf("ConflictResolution conflicted (Overwrite vs Abort): Overwrite for %s, Abort for %s; %s is used",
			strings.Join(over, ", "), strings.Join(others, ", "), terms.ConflictResolution))
	}
	if kept, others := split(dependents, preserves); len(kept) > 0 && len(others) > 0 {
		parts = append(parts, fmt.Sprintf("PreserveResourcesOnDeletion conflicted (true vs false): true for %s, false for %s; %t is used",
			strings.Join(kept, ", "), strings.Join(others, ", "), terms.PreserveResourcesOnDeletion))
	}
	if len(parts) == 0 {
		return nil
	}
	return errors.New("the bindings that require this one differ: " + strings.Join(parts, "; "))
}

// overwritesOf returns a function that reports whether a dependent takes the object over.
func overwritesOf(object workv1alpha2.ObjectReference) func(*workv1alpha2.ResourceBinding) bool {
	kind := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind).GroupKind()
	return func(dependent *workv1alpha2.ResourceBinding) bool {
		return dependent.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite &&
			binding.PartyOf(dependent).TakesOver(kind, object.Namespace)
	}
}

func preserves(dependent *workv1alpha2.ResourceBinding) bool {
	return dependent.Spec.PreserveResourcesOnDeletion != nil && *dependent.Spec.PreserveResourcesOnDeletion
}

// split sorts the names of dependents by a claim.
func split(dependents []*workv1alpha2.ResourceBinding, claim func(*workv1alpha2.ResourceBinding) bool) (yes, no []string) {
	for _, dependent := range dependents {
		name := dependent.Namespace + "/" + dependent.Name
		if claim(dependent) {
			yes = append(yes, name)
			continue
		}
		no = append(no, name)
	}
	slices.Sort(yes)
	slices.Sort(no)
	return yes, no
}
