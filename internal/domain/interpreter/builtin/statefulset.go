package builtin

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

func statefulSet(pods podReader) interpreter.Rules {
	counters := []string{
		"availableReplicas", "currentReplicas", "readyReplicas", "replicas", "updatedReplicas",
	}
	return interpreter.Rules{
		Replicas:        pods.workloadReplicas,
		ReviseReplicas:  reviseReplicas("spec", "replicas"),
		AggregateStatus: aggregateWorkload(counters),
		ReflectStatus:   reflectWorkload(counters),
		IsHealthy:       isRolledOut,
		Dependencies:    statefulSetDependencies,
	}
}

// statefulSetDependencies returns the StatefulSet's dependencies, without the PersistentVolumeClaims that
// it creates in each cluster.
func statefulSetDependencies(ctx context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	dependencies, err := podDependencies("spec", "template")(ctx, template)
	if err != nil {
		return nil, err
	}
	claims, err := nested[[]any](template.Object, "spec", "volumeClaimTemplates")
	if err != nil {
		return nil, err
	}
	createdClaims := make(map[string]bool, len(claims))
	for _, claim := range claims {
		createdClaims[entryText(claim, "metadata", "name")] = true
	}
	return slices.DeleteFunc(dependencies, func(d configv1alpha1.DependentObjectReference) bool {
		return d.Kind == kindClaim && createdClaims[d.Name]
	}), nil
}

// entryText returns the string at path in the list entry, or "".
func entryText(entry any, path ...string) string {
	object, _ := entry.(map[string]any)
	name, _ := text(object, path...)
	return name
}
