package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/interpreter"
)

func clusterRole() interpreter.Rules {
	return interpreter.Rules{Retain: retainAggregatedRules}
}

// retainAggregatedRules keeps the member's rules in a ClusterRole with an aggregationRule, because a
// controller in the member sets them and would revert other values.
func retainAggregatedRules(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	aggregationRule, err := nested[map[string]any](desired.Object, "aggregationRule")
	if err != nil || aggregationRule == nil {
		return desired, err
	}
	retained := copyOnWrite{object: desired}
	rules, found := observed.Object["rules"]
	if !found {
		retained.remove("rules")
		return retained.object, nil
	}
	err = retained.set(rules, "rules")
	return retained.object, err
}
