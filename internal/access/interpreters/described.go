package interpreters

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// DescribedSource is a source of an Interpreter with a description for users.
type DescribedSource struct {
	interpreter.Source
	// Describe returns what interprets an operation on a kind, such as
	// "ResourceInterpreterCustomization workload". It must be called only if the source has a rule
	// for the operation.
	Describe func(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) string
}

// Sources returns the sources in order of precedence.
func (i *Interpreter) Sources() []DescribedSource { return slices.Clone(i.sources) }

// NewCustomized returns a source with only the rules of the given customizations. It uses the same
// engine as New.
func NewCustomized(o Options, customizations []*configv1alpha1.ResourceInterpreterCustomization) (interpreter.Source, error) {
	made, err := New(o)
	if err != nil {
		return nil, err
	}
	made.customized.setAll(customizations)
	return &made.customized, nil
}

// describeAs returns a Describe function for a source that always has the same description.
func describeAs(text string) func(schema.GroupVersionKind, configv1alpha1.InterpreterOperation) string {
	return func(schema.GroupVersionKind, configv1alpha1.InterpreterOperation) string { return text }
}

// describe returns the names of the customizations whose scripts interpret the operation.
func (c *customizedRules) describe(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, script := range c.scripts[kind][operation] {
		names = append(names, script.Customization)
	}
	return configv1alpha1.ResourceKindResourceInterpreterCustomization + " " + strings.Join(names, ", ")
}
