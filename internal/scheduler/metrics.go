package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/placement"
)

// cause is why a binding was queued, as a metric label.
type cause string

const (
	causeAdd     cause = "BindingAdd"
	causeUpdate  cause = "BindingUpdate"
	causeCluster cause = "ClusterChanged"
	causeFailure cause = "ScheduleAttemptFailure"
)

// measurements are the metrics of the scheduler.
type measurements struct {
	registry prometheus.Registerer
	attempts *prometheus.CounterVec
	duration *prometheus.HistogramVec
	incoming *prometheus.CounterVec
	steps    *prometheus.HistogramVec
	points   *prometheus.HistogramVec
	plugins  *prometheus.HistogramVec
}

func newMeasurements(registry prometheus.Registerer) (measurements, error) {
	m := measurements{
		registry: registry,
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "karmada_scheduler_schedule_attempts_total",
			Help: "Tries to schedule a binding.",
		}, []string{"result", "schedule_type"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "karmada_scheduler_e2e_scheduling_duration_seconds",
			Help:    "Time to schedule a binding and to store the result.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"result", "schedule_type"}),
		incoming: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "karmada_scheduler_queue_incoming_bindings_total",
			Help: "Bindings put into the queue, by what caused it.",
		}, []string{"event"}),
	}
	m.observing()
	err := m.register()
	return m, err
}

// observing makes the metrics of what happens inside of a scheduling.
func (m *measurements) observing() {
	m.steps = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "karmada_scheduler_scheduling_algorithm_duration_seconds",
		Help:    "Time of one step of a scheduling.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
	}, []string{"schedule_step"})
	m.points = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "karmada_scheduler_framework_extension_point_duration_seconds",
		Help:    "Time of all plugins of a point, for all clusters.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 12),
	}, []string{"extension_point", "result"})
	m.plugins = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "karmada_scheduler_plugin_execution_duration_seconds",
		Help:    "Time of one plugin, for all clusters.",
		Buckets: prometheus.ExponentialBuckets(0.00001, 1.5, 20),
	}, []string{"plugin", "extension_point", "result"})
}

// register makes use of metrics that another scheduler of this process has
// registered.
func (m *measurements) register() error {
	return errors.Join(
		observe.Register(m.registry, &m.attempts), observe.Register(m.registry, &m.incoming), observe.Register(m.registry, &m.duration),
		observe.Register(m.registry, &m.steps), observe.Register(m.registry, &m.points), observe.Register(m.registry, &m.plugins))
}

// resultSuccess is how plugins end: they look at what is in memory, and cannot fail.
const resultSuccess = "success"

// observer measures the inside of a scheduling by a clock.
func (m measurements) observer(now func() time.Time) placement.Observer {
	watch := func(observer prometheus.Observer) func() {
		started := now()
		return func() { observer.Observe(now().Sub(started).Seconds()) }
	}
	return placement.Observer{
		Step: func(step placement.Step) func() { return watch(m.steps.WithLabelValues(string(step))) },
		ExtensionPoint: func(point placement.ExtensionPoint) func() {
			return watch(m.points.WithLabelValues(string(point), resultSuccess))
		},
		Plugin: func(point placement.ExtensionPoint, plugin string) func() {
			return watch(m.plugins.WithLabelValues(plugin, string(point), resultSuccess))
		},
	}
}

// pending counts the waiting bindings whenever it is asked, so that counting costs
// the scheduler nothing. It takes the place of one that an earlier scheduler of
// this process has left.
func (m measurements) pending(queue string, count func() int) error {
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "scheduler_pending_bindings",
		Help:        "Bindings that wait: ready to be scheduled, after a failure, or for room in the clusters.",
		ConstLabels: prometheus.Labels{"queue": queue},
	}, func() float64 { return float64(count()) })
	err := m.registry.Register(gauge)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		m.registry.Unregister(known.ExistingCollector)
		err = m.registry.Register(gauge)
	}
	if err != nil {
		return fmt.Errorf("registering metrics of the scheduler: %w", err)
	}
	return nil
}

func (m measurements) queued(why cause) { m.incoming.WithLabelValues(string(why)).Inc() }

func (m measurements) attempted(kind placement.ScheduleType, err error, took time.Duration) {
	result := "scheduled"
	if err != nil {
		result = "error"
	}
	m.attempts.WithLabelValues(result, string(kind)).Inc()
	m.duration.WithLabelValues(result, string(kind)).Observe(took.Seconds())
}
