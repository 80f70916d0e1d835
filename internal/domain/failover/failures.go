package failover

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// avoidancePeriod is how long the scheduler avoids a cluster after an application has failed there.
const avoidancePeriod = 30 * time.Minute

// Failures records the time of each eviction of an application from a cluster in which it was
// unhealthy. The times apply to one version of the template only, because the next version may work in
// these clusters.
type Failures struct {
	Template string               `json:"template"`
	Clusters map[string]time.Time `json:"clusters"`
}

// ReadFailures returns the binding's recorded failures that are still valid. It ignores invalid text
// and times in the future.
func ReadFailures(bound binding.Object, now time.Time) Failures {
	spec := bound.BindingSpec()
	empty := Failures{Template: spec.Resource.ResourceVersion}
	if spec.Failover == nil || spec.Failover.Application == nil {
		return empty
	}
	var stored Failures
	text := bound.GetAnnotations()[workv1alpha2.FailedInAnnotation]
	if text == "" || json.Unmarshal([]byte(text), &stored) != nil || stored.Template != empty.Template {
		return empty
	}
	for cluster, at := range stored.Clusters {
		if at.After(now) || !now.Before(at.Add(avoidancePeriod)) {
			delete(stored.Clusters, cluster)
		}
	}
	return stored
}

// Add returns a copy of the failures with the given clusters added, which failed now.
func (f Failures) Add(clusters []string, now time.Time) Failures {
	all := Failures{Template: f.Template, Clusters: map[string]time.Time{}}
	for cluster, at := range f.Clusters {
		all.Clusters[cluster] = at
	}
	for _, cluster := range clusters {
		all.Clusters[cluster] = now.UTC().Truncate(time.Second)
	}
	return all
}

// Encode returns the stored form, or an empty string if there are no failures.
func (f Failures) Encode() (string, error) {
	if len(f.Clusters) == 0 {
		return "", nil
	}
	text, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("encoding where an application failed: %w", err)
	}
	return string(text), nil
}

// KeepsFailedCopy reports whether an eviction is in progress that keeps the unhealthy copy of an
// application until the eviction ends.
func KeepsFailedCopy(spec *workv1alpha2.ResourceBindingSpec) bool {
	for i := range spec.GracefulEvictionTasks {
		if taskKeepsFailedCopy(&spec.GracefulEvictionTasks[i]) {
			return true
		}
	}
	return false
}

func taskKeepsFailedCopy(task *workv1alpha2.GracefulEvictionTask) bool {
	switch task.Producer {
	case workv1alpha2.EvictionProducerApplicationFailover, workv1alpha2.EvictionProducerClusterApplicationFailover:
		return task.PurgeMode == policyv1alpha1.PurgeModeGracefully || task.PurgeMode == ""
	default:
		return false
	}
}

// AvoidedClusters returns the clusters that the scheduler should avoid.
func (f Failures) AvoidedClusters() sets.Set[string] { return sets.KeySet(f.Clusters) }

// NextExpiry returns the time at which the next failure expires, or the zero time if there are no
// failures.
func (f Failures) NextExpiry() (next time.Time) {
	for _, at := range f.Clusters {
		if over := at.Add(avoidancePeriod); next.IsZero() || over.Before(next) {
			next = over
		}
	}
	return next
}
