package descheduling

import (
	"encoding/json"
	"fmt"
	"time"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

const (
	// explanationPeriod is how long the removal of all replicas of a cluster explains that the
	// scheduler removes this cluster.
	explanationPeriod = 30 * time.Minute
	// clockTolerance is the accepted difference between the clocks of the descheduler and the API
	// server.
	clockTolerance = time.Minute
)

// Apply returns a copy of the binding without the removed replicas. It records the clusters that
// lost all their replicas in workv1alpha2.DescheduledFromAnnotation, and drops records that explain
// nothing any more.
func Apply(bound binding.Object, removals []Removal, now time.Time) (binding.Object, error) {
	desired := binding.Copy(bound)
	spec := desired.BindingSpec()
	spec.Clusters = Lower(spec.Clusters, removals)
	emptied := emptiedClusters(spec.Clusters, removals)
	if len(emptied) == 0 {
		return desired, nil
	}
	record := readRecord(bound)
	for cluster, at := range record {
		if !explains(at, now) {
			delete(record, cluster)
		}
	}
	for _, cluster := range emptied {
		record[cluster] = now.UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encoding the annotation %s: %w", workv1alpha2.DescheduledFromAnnotation, err)
	}
	annotations := desired.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1alpha2.DescheduledFromAnnotation] = string(text)
	desired.SetAnnotations(annotations)
	return desired, nil
}

// ExplainsRemoval reports whether the descheduler removed all replicas of the binding from a cluster
// shortly before the given time, at which the Work of the binding in this cluster was deleted. The
// scheduler removes a target without replicas when it places the replicas in other clusters.
func ExplainsRemoval(bound binding.Object, cluster string, deletedAt time.Time) bool {
	at, ok := readRecord(bound)[cluster]
	return ok && explains(at, deletedAt)
}

func explains(at, later time.Time) bool {
	elapsed := later.Sub(at)
	return elapsed >= -clockTolerance && elapsed <= explanationPeriod
}

// readRecord returns the times at which clusters lost all their replicas, by cluster. An invalid
// record is empty.
func readRecord(bound binding.Object) map[string]time.Time {
	record := map[string]time.Time{}
	text := bound.GetAnnotations()[workv1alpha2.DescheduledFromAnnotation]
	if text == "" || json.Unmarshal([]byte(text), &record) != nil || record == nil {
		return map[string]time.Time{}
	}
	return record
}

// emptiedClusters returns the clusters that lost replicas and have no replicas left.
func emptiedClusters(lowered []workv1alpha2.TargetCluster, removals []Removal) []string {
	var emptied []string
	for _, removal := range removals {
		for i := range lowered {
			if lowered[i].Name == removal.Cluster {
				if lowered[i].Replicas == 0 {
					emptied = append(emptied, removal.Cluster)
				}
				break
			}
		}
	}
	return emptied
}
