package failover

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// UnhealthySince maps a cluster to the time since when the workload is unhealthy there. Times are
// stored with a resolution of one second.
type UnhealthySince map[string]time.Time

// Merge returns the union of both maps. If both maps contain a cluster, the earlier time is used.
func (u UnhealthySince) Merge(other UnhealthySince) UnhealthySince {
	all := UnhealthySince{}
	maps.Copy(all, u)
	for cluster, since := range other {
		if known, ok := all[cluster]; !ok || since.Before(known) {
			all[cluster] = since
		}
	}
	return all
}

// ParseUnhealthySince parses the text that Encode returned. Invalid text is ignored. A missing time or
// a time in the future is replaced by now.
func ParseUnhealthySince(text string, now time.Time) UnhealthySince {
	memory := UnhealthySince{}
	if text == "" || json.Unmarshal([]byte(text), &memory) != nil {
		return UnhealthySince{}
	}
	for cluster, since := range memory {
		if since.IsZero() || since.After(now) {
			memory[cluster] = now.Truncate(time.Second)
		}
	}
	return memory
}

// Encode returns the map's stored form, or an empty string if no cluster is unhealthy.
func (u UnhealthySince) Encode() (string, error) {
	if len(u) == 0 {
		return "", nil
	}
	stored := make(map[string]time.Time, len(u))
	for cluster, since := range u {
		stored[cluster] = since.UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return "", fmt.Errorf("encoding since when a workload has been unhealthy: %w", err)
	}
	return string(text), nil
}

// HasApplicationFailover reports whether a binding's workload is evicted from clusters in which it is
// unhealthy. healthKnown is false if the interpreter cannot report the health of the workload's kind. A
// namespaced workload is evicted only if its dependencies are propagated, because without them it
// cannot become healthy in another cluster.
func HasApplicationFailover(bound binding.Object, healthKnown bool) bool {
	spec := bound.BindingSpec()
	return healthKnown && bound.GetDeletionTimestamp() == nil && spec.Failover != nil && spec.Failover.Application != nil &&
		(spec.PropagateDeps || !binding.IsNamespaced(bound)) && len(bound.BindingStatus().AggregatedStatus) > 0
}

// Update returns the updated map. It contains the targets in which the workload is unhealthy now and
// that have no eviction task, each with the time at which the workload was first observed as unhealthy.
func (u UnhealthySince) Update(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus,
	now time.Time) UnhealthySince {
	updated := UnhealthySince{}
	for i := range status.AggregatedStatus {
		item := &status.AggregatedStatus[i]
		if item.Health != workv1alpha2.ResourceUnhealthy || !HasTarget(spec, item.ClusterName) || IsEvicting(spec, item.ClusterName) {
			continue
		}
		updated[item.ClusterName] = now
		if since, known := u[item.ClusterName]; known {
			updated[item.ClusterName] = since
		}
	}
	return updated
}

// minObservation is how long this process itself must observe that a workload is unhealthy, regardless
// of the stored time. The status that a process finds at its start may be outdated, so clusters need
// time to report the current status. The period is measured with a monotonic clock.
const minObservation = 30 * time.Second

// Overdue returns the sorted names of the clusters in which the workload has been unhealthy for longer
// than tolerated. It also returns the time at which the next cluster will be overdue, or the zero time
// if there is none. observed contains the times that this process observed itself.
func (u UnhealthySince) Overdue(observed UnhealthySince, behavior *policyv1alpha1.ApplicationFailoverBehavior,
	now time.Time) (clusters []string, next time.Time) {
	toleration := unhealthyToleration(behavior)
	for _, cluster := range slices.Sorted(maps.Keys(u)) {
		left := max(u[cluster].Add(toleration).Sub(now), observed[cluster].Add(min(toleration, minObservation)).Sub(now))
		if left <= 0 {
			clusters = append(clusters, cluster)
			continue
		}
		if due := now.Add(left); next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return clusters, next
}

// defaultToleration is how long a workload may be unhealthy if its policy does not set
// tolerationSeconds.
const defaultToleration = 300 * time.Second

func unhealthyToleration(behavior *policyv1alpha1.ApplicationFailoverBehavior) time.Duration {
	if seconds := behavior.DecisionConditions.TolerationSeconds; seconds != nil {
		return time.Duration(max(*seconds, 0)) * time.Second
	}
	return defaultToleration
}

// defaultGrace is the grace period, in seconds, that admission sets in a policy that has none.
const defaultGrace = 600

// ErrGracefulDisabled is returned if a policy requests graceful eviction and the operator has disabled
// that feature.
var ErrGracefulDisabled = errors.New("the purgeMode Gracefully needs the feature gate GracefulEviction of karmada-controller-manager: turn it on, or set failover.application.purgeMode to Directly or Never")

// ApplicationEviction returns the eviction from a cluster in which the workload was unhealthy for too
// long. graceful reports whether graceful eviction is enabled. preserve reports whether to preserve the
// state that the policy requests.
func ApplicationEviction(bound binding.Object, cluster string, graceful, preserve bool) (Eviction, error) {
	behavior := bound.BindingSpec().Failover.Application
	e := Eviction{
		From: cluster, PurgeMode: behavior.PurgeMode, Reason: workv1alpha2.EvictionReasonApplicationFailure,
		Producer: workv1alpha2.EvictionProducerApplicationFailover,
		Message:  fmt.Sprintf("unhealthy for longer than %s", unhealthyToleration(behavior)),
	}
	if !binding.IsNamespaced(bound) {
		e.Producer = workv1alpha2.EvictionProducerClusterApplicationFailover
	}
	switch e.PurgeMode {
	case policyv1alpha1.PurgeModeGracefully, "":
		if !graceful {
			return e, ErrGracefulDisabled
		}
		e.PurgeMode, e.GracePeriodSeconds = policyv1alpha1.PurgeModeGracefully, new(int32(defaultGrace))
		if seconds := behavior.GracePeriodSeconds; seconds != nil {
			e.GracePeriodSeconds = new(*seconds)
		}
	case policyv1alpha1.PurgeModeDirectly, policyv1alpha1.PurgeModeNever:
	default:
		return e, fmt.Errorf("failover.application.purgeMode %q: must be Directly, Gracefully or Never", e.PurgeMode)
	}
	if preserve {
		return e.withPreservedState(bound, behavior.StatePreservation)
	}
	return e, nil
}
