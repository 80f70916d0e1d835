package builtin

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func job(pods podReader, now func() time.Time) interpreter.Rules {
	return interpreter.Rules{
		Replicas:        pods.jobReplicas,
		ReviseReplicas:  reviseReplicas("spec", "parallelism"),
		Retain:          retainJobLabels,
		AggregateStatus: jobAggregator{now: now}.aggregate,
		ReflectStatus:   reflectFields("active", "succeeded", "failed", "conditions", "startTime", "completionTime"),
		Dependencies:    podDependencies("spec", "template"),
	}
}

// jobReplicas returns how many of the Job's Pods can run at the same time: parallelism, but at most
// completions.
func (p podReader) jobReplicas(_ context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	replicas, err := integerOrZero(template.Object, "spec", "parallelism")
	if err != nil {
		return 0, nil, err
	}
	completions, hasCompletions, err := integer(template.Object, "spec", "completions")
	if err != nil {
		return 0, nil, err
	}
	if hasCompletions {
		replicas = min(replicas, completions)
	}
	requirements, err := p.templateRequirements(template)
	return saturateInt32(replicas), requirements, err
}

// retainJobLabels keeps the member object's selector and Pod labels, which are immutable and which each
// API server generates from the Job's UID.
func retainJobLabels(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	retained := copyOnWrite{object: desired}
	for _, path := range [][]string{
		{"spec", "selector", "matchLabels"},
		{"spec", "template", "metadata", "labels"},
	} {
		labels, err := nested[map[string]any](observed.Object, path...)
		if err != nil {
			return nil, fmt.Errorf("reading the member object: %w", err)
		}
		if labels == nil {
			continue
		}
		if err := retained.set(labels, path...); err != nil {
			return nil, err
		}
	}
	return retained.object, nil
}
