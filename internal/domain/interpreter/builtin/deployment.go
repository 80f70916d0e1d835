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
		Replicas:     pods.workloadReplicas,
		Revise:       revise("spec", "replicas"),
		Retain:       retainReplicas,
		Aggregate:    conditionAggregator{sum: sumWorkload(counters), now: now}.aggregate,
		Status:       collectWorkload(counters, available, progressing, replicaFailure),
		Healthy:      isRolledOut,
		Dependencies: podDependencies("spec", "template"),
	}
}

func replicaSet(pods podReader) interpreter.Rules {
	counters := []string{"replicas", "readyReplicas", "availableReplicas"}
	return interpreter.Rules{
		Replicas:     pods.workloadReplicas,
		Revise:       revise("spec", "replicas"),
		Aggregate:    sumWorkload(counters),
		Status:       collectWorkload(counters, replicaFailure),
		Healthy:      isReplicaSetHealthy,
		Dependencies: podDependencies("spec", "template"),
	}
}

// retainReplicas leaves the number of replicas to the member cluster, where an
// autoscaler sets it, if the template is marked so.
func retainReplicas(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	mark, _, err := unstructured.NestedFieldNoCopy(desired.Object, "metadata", "labels", workv1alpha2.RetainReplicasLabel)
	if err != nil {
		return nil, err
	}
	if mark != workv1alpha2.RetainReplicasValue {
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

// isRolledOut is the health of Deployments and StatefulSets: the controller has
// seen the latest spec, all replicas are of it, and all of those are available.
func isRolledOut(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	status, observed, err := observedStatus(memberObject)
	if err != nil || !observed {
		return false, err
	}
	wanted, bounded, err := integer(memberObject.Object, "spec", "replicas")
	if err != nil {
		return false, err
	}
	updated, available := status.read("updatedReplicas"), status.read("availableReplicas")
	return (!bounded || updated >= wanted) && available >= updated && status.err == nil, status.err
}

// isReplicaSetHealthy does not ask for updated replicas; ReplicaSets never
// replace the ones they have.
func isReplicaSetHealthy(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	status, observed, err := observedStatus(memberObject)
	if err != nil || !observed {
		return false, err
	}
	wanted, bounded, err := integer(memberObject.Object, "spec", "replicas")
	if err != nil {
		return false, err
	}
	available := status.read("availableReplicas")
	return (!bounded || available >= wanted) && status.err == nil, status.err
}

// observedStatus returns the status of a member object and whether it is about
// the latest generation of its spec.
func observedStatus(memberObject *unstructured.Unstructured) (*counterReader, bool, error) {
	status, err := nested[map[string]any](memberObject.Object, "status")
	if err != nil {
		return nil, false, err
	}
	reader := &counterReader{status: status}
	observed := reader.read(observedGeneration) == memberObject.GetGeneration()
	return reader, observed, reader.err
}
