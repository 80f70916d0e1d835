package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	err := errors.Join(register(registry, &m.attempts), register(registry, &m.duration), register(registry, &m.incoming))
	return m, err
}

// register makes use of a collector that another scheduler of this process has
// registered.
func register[C prometheus.Collector](registry prometheus.Registerer, collector *C) error {
	err := registry.Register(*collector)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		if existing, ok := known.ExistingCollector.(C); ok {
			*collector = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("registering metrics of the scheduler: %w", err)
	}
	return nil
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
