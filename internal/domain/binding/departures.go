package binding

import (
	"encoding/json"
	"maps"
	"time"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// departureRetention is how long a departure stays recorded. The Work in the cluster is normally
// deleted within seconds, and later only if the controller manager does not run.
const departureRetention = 24 * time.Hour

// RecordDepartures records in workv1alpha2.DepartedClustersAnnotation that the binding left clusters
// because of a change by a user or because an eviction ended, and drops the records of clusters that
// are targets again. The writer of the targets calls it in the same write, so that a record is
// neither missing nor outdated. Records that are older than a day are dropped with the next
// departure.
func RecordDepartures(bound Object, clusters []string, now time.Time) {
	record := readDepartures(bound)
	if len(clusters) == 0 && len(record) == 0 {
		return
	}
	for _, cluster := range clusters {
		record[cluster] = now.UTC().Truncate(time.Second)
	}
	expected := ExpectedClusters(bound.BindingSpec())
	maps.DeleteFunc(record, func(cluster string, at time.Time) bool {
		return expected.Has(cluster) || len(clusters) > 0 && now.Sub(at) > departureRetention
	})
	SetJSONAnnotation(bound, workv1alpha2.DepartedClustersAnnotation, record, len(record) == 0)
}

// HasDeparted reports whether the binding left the cluster for a recorded reason, at or after the
// given time. The caller passes the creation time of a Work, so that an earlier departure does not
// explain the deletion of a later copy.
func HasDeparted(bound Object, cluster string, since time.Time) bool {
	at, ok := readDepartures(bound)[cluster]
	return ok && !at.Before(since.Truncate(time.Second))
}

// readDepartures returns the recorded departures by cluster. An invalid record is empty.
func readDepartures(bound Object) map[string]time.Time {
	record := map[string]time.Time{}
	text := bound.GetAnnotations()[workv1alpha2.DepartedClustersAnnotation]
	if text == "" || json.Unmarshal([]byte(text), &record) != nil || record == nil {
		return map[string]time.Time{}
	}
	return record
}
