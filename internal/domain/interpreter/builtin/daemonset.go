package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/interpreter"
)

// daemonSet returns the rules for DaemonSets. It has no rule for replicas, because each cluster
// runs one Pod per node.
func daemonSet() interpreter.Rules {
	counters := []string{
		"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled",
		"numberReady", "updatedNumberScheduled", "numberUnavailable",
	}
	return interpreter.Rules{
		AggregateStatus: aggregateWorkload(counters),
		ReflectStatus:   reflectWorkload(counters),
		IsHealthy:       isDaemonSetHealthy,
		Dependencies:    podDependencies("spec", "template"),
	}
}

func isDaemonSetHealthy(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	status, observed, err := observedStatus(memberObject)
	if err != nil || !observed {
		return false, err
	}
	desired, updated := status.read("desiredNumberScheduled"), status.read("updatedNumberScheduled")
	available := status.read("numberAvailable")
	return updated >= desired && available >= updated && status.err == nil, status.err
}
