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

// Memory is since when a workload has been unhealthy, by cluster. Stored it is to the
// second.
type Memory map[string]time.Time

// With is the memory of two of which each knows something: the longer time counts.
func (m Memory) With(other Memory) Memory {
	all := Memory{}
	maps.Copy(all, m)
	for cluster, since := range other {
		if known, ok := all[cluster]; !ok || since.Before(known) {
			all[cluster] = since
		}
	}
	return all
}

// ReadMemory reads what Text wrote. What cannot be read is forgotten, and what
// is said of no time or of the future began now.
func ReadMemory(text string, now time.Time) Memory {
	memory := Memory{}
	if text == "" || json.Unmarshal([]byte(text), &memory) != nil {
		return Memory{}
	}
	for cluster, since := range memory {
		if since.IsZero() || since.After(now) {
			memory[cluster] = now.Truncate(time.Second)
		}
	}
	return memory
}

// Text is the memory as it is stored; empty when there is nothing to remember.
func (m Memory) Text() (string, error) {
	if len(m) == 0 {
		return "", nil
	}
	stored := make(map[string]time.Time, len(m))
	for cluster, since := range m {
		stored[cluster] = since.UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return "", fmt.Errorf("encoding since when a workload has been unhealthy: %w", err)
	}
	return string(text), nil
}

// TakesPart tells whether the workload of a binding leaves clusters in which it is
// not healthy. judged tells whether the health of its kind is known at all. A
// namespaced workload takes part only with its dependencies, without which it
// would be healthy nowhere else.
func TakesPart(bound binding.Object, judged bool) bool {
	spec := bound.BindingSpec()
	return judged && bound.GetDeletionTimestamp() == nil && spec.Failover != nil && spec.Failover.Application != nil &&
		(spec.PropagateDeps || !binding.Namespaced(bound)) && len(bound.BindingStatus().AggregatedStatus) > 0
}

// Observe is the memory after another look: of the targets in which the workload is
// unhealthy now and out of which no task leads, each since it was first seen so.
func (m Memory) Observe(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus, now time.Time) Memory {
	seen := Memory{}
	for i := range status.AggregatedStatus {
		item := &status.AggregatedStatus[i]
		if item.Health != workv1alpha2.ResourceUnhealthy || !Targets(spec, item.ClusterName) || Evicting(spec, item.ClusterName) {
			continue
		}
		seen[item.ClusterName] = now
		if since, known := m[item.ClusterName]; known {
			seen[item.ClusterName] = since
		}
	}
	return seen
}

// believed is how long a process must itself see that a workload is unhealthy,
// whatever is stored: what is there when a process starts may have been reported long
// ago, and clusters take a while to tell how it is now. It is measured on a clock that
// does not jump.
const believed = 30 * time.Second

// Overdue are the clusters, sorted, in which the workload has been unhealthy for
// longer than is tolerated, and when the next one will be; zero for never. seen is
// the part of the memory that the process has not been told but seen.
func (m Memory) Overdue(seen Memory, behavior *policyv1alpha1.ApplicationFailoverBehavior, now time.Time) (clusters []string, next time.Time) {
	toleration := tolerated(behavior)
	for _, cluster := range slices.Sorted(maps.Keys(m)) {
		left := max(m[cluster].Add(toleration).Sub(now), seen[cluster].Add(min(toleration, believed)).Sub(now))
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

// defaultToleration is how long a workload may be unhealthy that does not say it.
const defaultToleration = 300 * time.Second

func tolerated(behavior *policyv1alpha1.ApplicationFailoverBehavior) time.Duration {
	if seconds := behavior.DecisionConditions.TolerationSeconds; seconds != nil {
		return time.Duration(max(*seconds, 0)) * time.Second
	}
	return defaultToleration
}

// defaultGrace is the grace period that admission gives a policy without one.
const defaultGrace = 600

// ErrGracefulOff tells that a policy asks for what the operator has switched off.
var ErrGracefulOff = errors.New("the purgeMode Gracefully needs the feature gate GracefulEviction of karmada-controller-manager: turn it on, or set failover.application.purgeMode to Directly or Never")

// Application is the eviction from a cluster in which the workload has been
// unhealthy for too long. graceful tells whether a graceful one is offered, with
// preserve the state that the policy asks for is taken along.
func Application(bound binding.Object, cluster string, graceful, preserve bool) (Eviction, error) {
	behavior := bound.BindingSpec().Failover.Application
	e := Eviction{
		From: cluster, PurgeMode: behavior.PurgeMode, Reason: workv1alpha2.EvictionReasonApplicationFailure,
		Producer: workv1alpha2.EvictionProducerApplicationFailover,
		Message:  fmt.Sprintf("unhealthy for longer than %s", tolerated(behavior)),
	}
	if !binding.Namespaced(bound) {
		e.Producer = workv1alpha2.EvictionProducerClusterApplicationFailover
	}
	switch e.PurgeMode {
	case policyv1alpha1.PurgeModeGracefully, "":
		if !graceful {
			return e, ErrGracefulOff
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
		return e.keeping(bound, behavior.StatePreservation)
	}
	return e, nil
}
