package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
)

// cause is the metric label that says why a binding was enqueued.
type cause string

const (
	causeAdd     cause = "BindingAdd"
	causeUpdate  cause = "BindingUpdate"
	causeCluster cause = "ClusterChanged"
	causeQuota   cause = "QuotaChanged"
	causeFailure cause = "ScheduleAttemptFailure"
)

// metrics holds the metrics of the scheduler.
type metrics struct {
	registry        prometheus.Registerer
	attempts        *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	incoming        *prometheus.CounterVec
	steps           *prometheus.HistogramVec
	extensionPoints *prometheus.HistogramVec
	plugins         *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) (metrics, error) {
	m := metrics{
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
	m.initHistograms()
	err := m.register()
	return m, err
}

// initHistograms creates the metrics for the durations of steps and plugins.
func (m *metrics) initHistograms() {
	m.steps = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "karmada_scheduler_scheduling_algorithm_duration_seconds",
		Help:    "Time of one step of a scheduling.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
	}, []string{"schedule_step"})
	m.extensionPoints = prometheus.NewHistogramVec(prometheus.HistogramOpts{
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

// register registers the metrics. If another scheduler in this process has registered them, it
// reuses the registered metrics.
func (m *metrics) register() error {
	return errors.Join(
		loop.RegisterMetric(m.registry, &m.attempts), loop.RegisterMetric(m.registry, &m.incoming), loop.RegisterMetric(m.registry, &m.duration),
		loop.RegisterMetric(m.registry, &m.steps), loop.RegisterMetric(m.registry, &m.extensionPoints),
		loop.RegisterMetric(m.registry, &m.plugins))
}

// resultSuccess is the result label of all plugins. Plugins only read memory, so they cannot
// fail.
const resultSuccess = "success"

// observer returns an Observer that measures the durations of steps and plugins.
func (m metrics) observer(now func() time.Time) placement.Observer {
	measure := func(observer prometheus.Observer) func() {
		started := now()
		return func() { observer.Observe(now().Sub(started).Seconds()) }
	}
	return placement.Observer{
		Step: func(step placement.Step) func() { return measure(m.steps.WithLabelValues(string(step))) },
		ExtensionPoint: func(point placement.ExtensionPoint) func() {
			return measure(m.extensionPoints.WithLabelValues(string(point), resultSuccess))
		},
		Plugin: func(point placement.ExtensionPoint, plugin string) func() {
			return measure(m.plugins.WithLabelValues(plugin, string(point), resultSuccess))
		},
	}
}

// registerPendingGauge registers a gauge that counts the waiting bindings each time the metrics are
// collected. It replaces the gauge of an earlier scheduler in this process.
func (m metrics) registerPendingGauge(queue string, count func() int) error {
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

func (m metrics) countEnqueued(why cause) { m.incoming.WithLabelValues(string(why)).Inc() }

func (m metrics) recordAttempt(kind placement.ScheduleType, err error, took time.Duration) {
	result := "scheduled"
	if err != nil {
		result = "error"
	}
	m.attempts.WithLabelValues(result, string(kind)).Inc()
	m.duration.WithLabelValues(result, string(kind)).Observe(took.Seconds())
}
