package builtin

import (
	"context"
	"fmt"

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
	rules, err := nested[[]any](observed.Object, "rules")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	if rules == nil {
		retained := edit{object: desired}
		retained.remove("rules")
		return retained.object, nil
	}
	return withField(desired, rules, "rules")
}
