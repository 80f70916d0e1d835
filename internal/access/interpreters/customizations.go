package interpreters

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/script"
)

// customizedRules is the source of the rules of ResourceInterpreterCustomizations.
type customizedRules struct {
	Table
	engine *script.Engine

	mu      sync.Mutex
	scripts map[schema.GroupVersionKind]interpreter.Scripts
}

// setAll replaces all customizations. It announces only the kinds whose scripts changed, and keeps
// the rules of the other kinds.
func (c *customizedRules) setAll(customizations []*configv1alpha1.ResourceInterpreterCustomization) {
	c.mu.Lock()
	defer c.mu.Unlock()
	merged := interpreter.MergeCustomizations(customizations)
	for kind, scripts := range merged {
		if !scripts.Equal(c.scripts[kind]) {
			c.Set(kind, c.engine.Rules(scripts))
		}
	}
	for kind := range c.scripts {
		if _, ok := merged[kind]; !ok {
			c.Delete(kind)
		}
	}
	c.scripts = merged
}
