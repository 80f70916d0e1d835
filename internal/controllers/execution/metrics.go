package execution

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/loop"
)

// Results of the update of an object in a member.
const (
	updateFailed    = "none"
	updateUnchanged = "unchanged"
	updateDone      = "updated"
)

// writeMetrics counts the requests to members. The series of a deleted member are kept, because the
// number of series is limited by the number of members times the number of kinds.
type writeMetrics struct {
	syncDuration              *prometheus.HistogramVec
	creates, updates, deletes *prometheus.CounterVec
}

// newWriteMetrics registers the metrics. If another control plane in this process has registered
// them, it returns the registered metrics.
func newWriteMetrics(registry prometheus.Registerer) (*writeMetrics, error) {
	object := []string{"result", "apiversion", "kind", "member_cluster"}
	m := &writeMetrics{
		syncDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "work_sync_workload_duration_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
			Help: "Duration in seconds to write the manifests of a Work to a member cluster.",
		}, []string{"result"}),
		creates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "create_resource_to_cluster", Help: "Number of objects created in member clusters.",
		}, append([]string{"recreate"}, object...)),
		updates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "update_resource_to_cluster", Help: "Number of updates of objects in member clusters.",
		}, append([]string{"operationResult"}, object...)),
		deletes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "delete_resource_from_cluster", Help: "Number of objects deleted from member clusters.",
		}, object),
	}
	return m, errors.Join(
		loop.RegisterMetric(registry, &m.syncDuration), loop.RegisterMetric(registry, &m.creates),
		loop.RegisterMetric(registry, &m.updates), loop.RegisterMetric(registry, &m.deletes))
}

func (w *writeMetrics) observeSync(start time.Time, failures []error) {
	w.syncDuration.WithLabelValues(resultLabel(errors.Join(failures...))).Observe(time.Since(start).Seconds())
}

func (w *writeMetrics) countCreate(member string, object *unstructured.Unstructured, recreate bool, err error) {
	w.creates.With(objectLabels(member, object, err, "recreate", strconv.FormatBool(recreate))).Inc()
}

func (w *writeMetrics) countUpdate(member string, object *unstructured.Unstructured, outcome string, err error) {
	w.updates.With(objectLabels(member, object, err, "operationResult", outcome)).Inc()
}

func (w *writeMetrics) countDelete(member string, object *unstructured.Unstructured, err error) {
	w.deletes.With(objectLabels(member, object, err)).Inc()
}

func objectLabels(member string, object *unstructured.Unstructured, err error, more ...string) prometheus.Labels {
	labels := prometheus.Labels{
		"result": resultLabel(err), "apiversion": object.GetAPIVersion(), "kind": object.GetKind(), "member_cluster": member,
	}
	for i := 0; i+1 < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

func resultLabel(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}
