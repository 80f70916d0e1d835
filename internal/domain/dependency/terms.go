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

// Settings are the settings that a binding takes from its dependents if no policy claims it.
type Settings struct {
	ConflictResolution          policyv1alpha1.ConflictResolution
	PreserveResourcesOnDeletion bool
}

// MergeSettings merges the settings of the object's dependents. The result does not depend on their
// order. Overwrite takes precedence over Abort, and preservation over deletion, so that no dependent
// loses a setting that it relies on. A dependent's setting Overwrite is ignored if the dependent may
// not take over the object.
func MergeSettings(object workv1alpha2.ObjectReference, dependents []*workv1alpha2.ResourceBinding) Settings {
	terms := Settings{ConflictResolution: policyv1alpha1.ConflictAbort}
	overwrites := overwritesObject(object)
	for _, dependent := range dependents {
		if overwrites(dependent) {
			terms.ConflictResolution = policyv1alpha1.ConflictOverwrite
		}
		terms.PreserveResourcesOnDeletion = terms.PreserveResourcesOnDeletion || preserves(dependent)
	}
	return terms
}

// SettingsConflict returns an error that describes the settings in which the dependents differ, or nil
// if they do not differ. The message does not depend on the dependents' order.
func SettingsConflict(object workv1alpha2.ObjectReference, dependents []*workv1alpha2.ResourceBinding) error {
	terms := MergeSettings(object, dependents)
	overwrites := overwritesObject(object)
	var parts []string
	if overwriting, others := splitBy(dependents, overwrites); len(overwriting) > 0 && len(others) > 0 {
		parts = append(parts, fmt.Sprintf("ConflictResolution conflicted (Overwrite vs Abort): Overwrite for %s, Abort for %s; %s is used",
			strings.Join(overwriting, ", "), strings.Join(others, ", "), terms.ConflictResolution))
	}
	if preserving, others := splitBy(dependents, preserves); len(preserving) > 0 && len(others) > 0 {
		parts = append(parts, fmt.Sprintf("PreserveResourcesOnDeletion conflicted (true vs false): true for %s, false for %s; %t is used",
			strings.Join(preserving, ", "), strings.Join(others, ", "), terms.PreserveResourcesOnDeletion))
	}
	if len(parts) == 0 {
		return nil
	}
	return errors.New("the bindings that require this one differ: " + strings.Join(parts, "; "))
}

// overwritesObject returns a function that reports whether a dependent both requests Overwrite and
// may take over the object.
func overwritesObject(object workv1alpha2.ObjectReference) func(*workv1alpha2.ResourceBinding) bool {
	kind := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind).GroupKind()
	return func(dependent *workv1alpha2.ResourceBinding) bool {
		return dependent.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite &&
			binding.AuthorOf(dependent).MayTakeOver(kind, object.Namespace)
	}
}

func preserves(dependent *workv1alpha2.ResourceBinding) bool {
	return dependent.Spec.PreserveResourcesOnDeletion != nil && *dependent.Spec.PreserveResourcesOnDeletion
}

// splitBy returns the sorted names of the dependents for which the predicate is true, and of those for
// which it is false.
func splitBy(dependents []*workv1alpha2.ResourceBinding, predicate func(*workv1alpha2.ResourceBinding) bool) (yes, no []string) {
	for _, dependent := range dependents {
		name := dependent.Namespace + "/" + dependent.Name
		if predicate(dependent) {
			yes = append(yes, name)
			continue
		}
		no = append(no, name)
	}
	slices.Sort(yes)
	slices.Sort(no)
	return yes, no
}
