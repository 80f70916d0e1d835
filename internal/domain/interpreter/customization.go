package interpreter

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// Script is a script of a customization.
type Script struct {
	// Customization is the name of the ResourceInterpreterCustomization.
	Customization string
	// Text is the Lua text of the script. It is not empty.
	Text string
}

// Scripts are the scripts of one kind, by operation. Only the list of InterpretDependency can
// contain more than one script. Scripts without an operation are absent.
type Scripts map[configv1alpha1.InterpreterOperation][]Script

// Equal reports whether both contain the same scripts from the same customizations.
func (s Scripts) Equal(other Scripts) bool {
	return maps.EqualFunc(s, other, slices.Equal[[]Script])
}

// TargetOf returns the kind that a customization is for.
func TargetOf(customization *configv1alpha1.ResourceInterpreterCustomization) schema.GroupVersionKind {
	target := customization.Spec.Target
	return schema.FromAPIVersionAndKind(target.APIVersion, target.Kind)
}

// MergeCustomizations returns the scripts of each kind that has at least one script. For each operation, the
// script of the customization with the smallest name is used. For InterpretDependency, the scripts
// of all customizations are used, in the order of the names.
//
// The result does not depend on the order of the customizations.
func MergeCustomizations(customizations []*configv1alpha1.ResourceInterpreterCustomization) map[schema.GroupVersionKind]Scripts {
	sorted := slices.SortedFunc(slices.Values(customizations), func(a, b *configv1alpha1.ResourceInterpreterCustomization) int {
		return strings.Compare(a.Name, b.Name)
	})
	operations := CustomOperations()
	merged := map[schema.GroupVersionKind]Scripts{}
	for _, customization := range sorted {
		kind := TargetOf(customization)
		for _, operation := range operations {
			text := operation.Script(&customization.Spec.Customizations)
			if text == "" || !operation.Mergeable && len(merged[kind][operation.Name]) > 0 {
				continue
			}
			if merged[kind] == nil {
				merged[kind] = Scripts{}
			}
			merged[kind][operation.Name] = append(merged[kind][operation.Name], Script{Customization: customization.Name, Text: text})
		}
	}
	return merged
}
