package dependencies

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop/looptest"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// dependingOn returns a rule with fixed dependencies.
func dependingOn(references ...dependency.Reference) interpreter.Rules {
	return interpreter.Rules{Dependencies: func(context.Context, *unstructured.Unstructured) ([]dependency.Reference, error) {
		return references, nil
	}}
}

func TestChangedRuleReachesAttachedDependencies(t *testing.T) {
	tests := map[string]struct {
		change func(*interpreters.Table)
		queued []string
		writes []string
	}{
		"another dependency replaces the first": {
			change: func(table *interpreters.Table) { table.Set(deployments, dependingOn(referenceTo("Secret", "keys"))) },
			queued: []string{"web-deployment"}, writes: []string{"patch web-deployment", "delete settings-configmap"},
		},
		"without dependencies, everything is detached": {
			change: func(table *interpreters.Table) { table.Set(deployments, dependingOn()) },
			queued: []string{"web-deployment"}, writes: []string{"delete settings-configmap", "patch web-deployment"},
		},
		"a rule with the same result writes nothing": {
			change: func(table *interpreters.Table) {
				table.Set(deployments, dependingOn(referenceTo("ConfigMap", "settings")))
			},
			queued: []string{"web-deployment"},
		},
		"a removed rule detaches nothing": {
			change: func(table *interpreters.Table) { table.Delete(deployments) }, queued: []string{"web-deployment"},
		},
		"a rule of another kind queues nothing": {
			change: func(table *interpreters.Table) {
				table.Set(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, dependingOn())
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			other := dependent("other")
			other.Spec.PropagateDeps = false
			w := newAttachedFixture(t, other)
			table := &interpreters.Table{}
			table.Set(deployments, dependingOn(referenceTo("ConfigMap", "settings")))
			w.rules = table
			var queued []string
			for _, request := range looptest.QueuedBy(t, w.newRulesSource, func() { test.change(table) }) {
				queued = append(queued, request.Name)
			}
			expectEqual(t, "queued dependents", queued, test.queued...)
			_, writes, _ := w.reconcile("web-deployment")
			expectEqual(t, "writes", writes, test.writes...)
		})
	}
}

func TestFirstRuleAttachesDependencies(t *testing.T) {
	w := newFixture(t, deployment("web"), dependent("web"), settingsConfigMap())
	table := &interpreters.Table{}
	w.rules = table
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes without a rule", writes)
	queued := looptest.QueuedBy(t, w.newRulesSource, func() { table.Set(deployments, dependingOn(referenceTo("ConfigMap", "settings"))) })
	if len(queued) != 1 || queued[0].NamespacedName != bindingKey("web-deployment") {
		t.Errorf("queued %v", queued)
	}
	_, writes, _ = w.reconcile("web-deployment")
	expectEqual(t, "writes with a rule", writes, "patch web-deployment", "create settings-configmap")
}
