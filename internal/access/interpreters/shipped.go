package interpreters

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/interpreter/script"
)

// shippedRules is the source of the rules of well-known kinds of other projects. The rules are
// constant.
type shippedRules map[schema.GroupVersionKind]interpreter.Rules

func newShippedRules(engine *script.Engine) (shippedRules, error) {
	customizations, err := builtin.Customizations()
	if err != nil {
		return nil, fmt.Errorf("reading the shipped customizations: %w", err)
	}
	rules := shippedRules{}
	for kind, scripts := range interpreter.MergeCustomizations(customizations) {
		rules[kind] = engine.Rules(scripts)
	}
	return rules, nil
}

// Rules implements interpreter.Source.
func (s shippedRules) Rules(kind schema.GroupVersionKind) interpreter.Rules { return s[kind] }
