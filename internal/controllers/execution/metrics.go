package execution

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/access/observe"
)

// What an update of a member object came to.
const (
	updateFailed    = "none"
	updateUnchanged = "unchanged"
	updateDone      = "updated"
)

// counters count what is done in members. Series of a member live as long as the
// process: their number is that of members times kinds.
type counters struct {
	synced                    *prometheus.HistogramVec
	created, updated, deleted *prometheus.CounterVec
}

// newCounters makes the metrics, or finds those that another control plane of this
// process registered.
func newCounters(registry prometheus.Registerer) (*counters, error) {
	object := []string{"result", "apiversion", "kind", "member_cluster"}
	c := &counters{
		synced: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "work_sync_workload_duration_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
			Help: "Duration in seconds to write the manifests of a Work to a member cluster.",
		}, []string{"result"}),
		created: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "create_resource_to_cluster", Help: "Number of objects created in member clusters.",
		}, append([]string{"recreate"}, object...)),
		updated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "update_resource_to_cluster", Help: "Number of updates of objects in member clusters.",
		}, append([]string{"operationResult"}, object...)),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "delete_resource_from_cluster", Help: "Number of objects deleted from member clusters.",
		}, object),
	}
	return c, errors.Join(
		observe.Register(registry, &c.synced), observe.Register(registry, &c.created),
		observe.Register(registry, &c.updated), observe.Register(registry, &c.deleted))
}

func (c *counters) sync(start time.Time, failures []error) {
	c.synced.WithLabelValues(result(errors.Join(failures...))).Observe(time.Since(start).Seconds())
}

func (c *counters) create(member string, object *unstructured.Unstructured, again bool, err error) {
	c.created.With(labelsOf(member, object, err, "recreate", strconv.FormatBool(again))).Inc()
}

func (c *counters) update(member string, object *unstructured.Unstructured, came string, err error) {
	c.updated.With(labelsOf(member, object, err, "operationResult", came)).Inc()
}

func (c *counters) delete(member string, object *unstructured.Unstructured, err error) {
	c.deleted.With(labelsOf(member, object, err)).Inc()
}

func labelsOf(member string, object *unstructured.Unstructured, err error, more ...string) prometheus.Labels {
	labels := prometheus.Labels{
		"result": result(err), "apiversion": object.GetAPIVersion(), "kind": object.GetKind(), "member_cluster": member,
	}
	for i := 0; i+1 < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}
