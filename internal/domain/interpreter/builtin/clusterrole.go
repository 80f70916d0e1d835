package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/interpreter"
)

func clusterRole() interpreter.Rules {
	return interpreter.Rules{Retain: retainAggregated}
}

// retainAggregated leaves the rules of a ClusterRole that gathers those of others
// to the member cluster, which fills them in again whatever they are.
func retainAggregated(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gathers, err := nested[map[string]any](desired.Object, "aggregationRule")
	if err != nil || gathers == nil {
		return desired, err
	}
	retained := edit{object: desired}
	rules, found := observed.Object["rules"]
	if !found {
		retained.remove("rules")
		return retained.object, nil
	}
	err = retained.set(rules, "rules")
	return retained.object, err
}
