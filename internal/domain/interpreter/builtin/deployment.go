package builtin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func deployment(pods podReader, now func() time.Time) interpreter.Rules {
	counters := []string{
		"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
	}
	return interpreter.Rules{
		Replicas:        pods.workloadReplicas,
		ReviseReplicas:  reviseReplicas("spec", "replicas"),
		Retain:          retainReplicas,
		AggregateStatus: conditionAggregator{aggregateCounters: aggregateWorkload(counters), now: now}.aggregate,
		ReflectStatus:   reflectWorkload(counters, availableType, progressingType, replicaFailureType),
		IsHealthy:       isRolledOut,
		Dependencies:    podDependencies("spec", "template"),
	}
}

func replicaSet(pods podReader) interpreter.Rules {
	counters := []string{"replicas", "readyReplicas", "availableReplicas"}
	return interpreter.Rules{
		Replicas:        pods.workloadReplicas,
		ReviseReplicas:  reviseReplicas("spec", "replicas"),
		AggregateStatus: aggregateWorkload(counters),
		ReflectStatus:   reflectWorkload(counters, replicaFailureType),
		IsHealthy:       isReplicaSetHealthy,
		Dependencies:    podDependencies("spec", "template"),
	}
}

// retainReplicas keeps the member object's replicas if the template has the retain-replicas label, so that
// an autoscaler in the member can set them.
func retainReplicas(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	label, _, err := unstructured.NestedFieldNoCopy(desired.Object, "metadata", "labels", workv1alpha2.RetainReplicasLabel)
	if err != nil {
		return nil, err
	}
	if label != workv1alpha2.RetainReplicasValue {
		return desired, nil
	}
	replicas, found, err := integer(observed.Object, "spec", "replicas")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	if !found {
		return nil, errors.New("reading the member object: spec.replicas, which is to be retained, is missing")
	}
	return withField(desired, replicas, "spec", "replicas")
}

// isRolledOut reports whether a Deployment or StatefulSet is healthy: its controller has observed the
// latest spec, and all replicas are updated and available.
func isRolledOut(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	status, observed, err := observedStatus(memberObject)
	if err != nil || !observed {
		return false, err
	}
	desired, hasReplicas, err := integer(memberObject.Object, "spec", "replicas")
	if err != nil {
		return false, err
	}
	updated, available := status.read("updatedReplicas"), status.read("availableReplicas")
	return (!hasReplicas || updated >= desired) && available >= updated && status.err == nil, status.err
}

// isReplicaSetHealthy reports whether the ReplicaSet is healthy. Unlike isRolledOut, it ignores
// updatedReplicas, because a ReplicaSet never updates its replicas.
func isReplicaSetHealthy(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	status, observed, err := observedStatus(memberObject)
	if err != nil || !observed {
		return false, err
	}
	desired, hasReplicas, err := integer(memberObject.Object, "spec", "replicas")
	if err != nil {
		return false, err
	}
	available := status.read("availableReplicas")
	return (!hasReplicas || available >= desired) && status.err == nil, status.err
}

// observedStatus returns the member object's status, and reports whether its controller has observed the
// latest generation.
func observedStatus(memberObject *unstructured.Unstructured) (*counterReader, bool, error) {
	status, err := nested[map[string]any](memberObject.Object, "status")
	if err != nil {
		return nil, false, err
	}
	reader := &counterReader{status: status}
	observed := reader.read(observedGeneration) == memberObject.GetGeneration()
	return reader, observed, reader.err
}
