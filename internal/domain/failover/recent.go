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

// recently is for how long a cluster is avoided in which an application has failed.
const recently = 30 * time.Minute

// Failures are when an application left clusters because it was not healthy there. They
// are about one state of its template: the next may work where this one did not.
type Failures struct {
	Template string               `json:"template"`
	Clusters map[string]time.Time `json:"clusters"`
}

// FailuresOf are the failures that a binding remembers and that still count. What
// cannot be read, and what is said of a time that is to come, does not.
func FailuresOf(bound binding.Object, now time.Time) Failures {
	spec := bound.BindingSpec()
	none := Failures{Template: spec.Resource.ResourceVersion}
	if spec.Failover == nil || spec.Failover.Application == nil {
		return none
	}
	var stored Failures
	text := bound.GetAnnotations()[workv1alpha2.FailedInAnnotation]
	if text == "" || json.Unmarshal([]byte(text), &stored) != nil || stored.Template != none.Template {
		return none
	}
	for cluster, at := range stored.Clusters {
		if at.After(now) || !now.Before(at.Add(recently)) {
			delete(stored.Clusters, cluster)
		}
	}
	return stored
}

// With is the failures with those in more clusters.
func (f Failures) With(clusters []string, now time.Time) Failures {
	all := Failures{Template: f.Template, Clusters: map[string]time.Time{}}
	for cluster, at := range f.Clusters {
		all.Clusters[cluster] = at
	}
	for _, cluster := range clusters {
		all.Clusters[cluster] = now.UTC().Truncate(time.Second)
	}
	return all
}

// Text is the failures as they are stored; empty when there are none.
func (f Failures) Text() (string, error) {
	if len(f.Clusters) == 0 {
		return "", nil
	}
	text, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("encoding where an application failed: %w", err)
	}
	return string(text), nil
}

// KeepsFailedCopy reports whether an application that left a cluster for being
// unhealthy keeps its copy there until the eviction ends.
func KeepsFailedCopy(spec *workv1alpha2.ResourceBindingSpec) bool {
	for i := range spec.GracefulEvictionTasks {
		if keepsFailedCopy(&spec.GracefulEvictionTasks[i]) {
			return true
		}
	}
	return false
}

func keepsFailedCopy(task *workv1alpha2.GracefulEvictionTask) bool {
	switch task.Producer {
	case workv1alpha2.EvictionProducerApplicationFailover, workv1alpha2.EvictionProducerClusterApplicationFailover:
		return task.PurgeMode == policyv1alpha1.PurgeModeGracefully || task.PurgeMode == ""
	default:
		return false
	}
}

// Avoided are the clusters that the application should not go to.
func (f Failures) Avoided() sets.Set[string] { return sets.KeySet(f.Clusters) }

// Next is when the first of the failures does not count any more; zero without any.
func (f Failures) Next() (next time.Time) {
	for _, at := range f.Clusters {
		if over := at.Add(recently); next.IsZero() || over.Before(next) {
			next = over
		}
	}
	return next
}
