package detector

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/loop"
)

// counters are the metrics of the detector.
type counters struct {
	matchDuration prometheus.Histogram
	applyDuration *prometheus.HistogramVec
	applyAttempts *prometheus.CounterVec
	preemptions   *prometheus.CounterVec
}

func newCounters(registry prometheus.Registerer) (*counters, error) {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 12)
	result := []string{"result"}
	c := &counters{
		matchDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "resource_match_policy_duration_seconds", Buckets: buckets,
			Help: "Duration in seconds to find the policy for a resource template.",
		}),
		applyDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "resource_apply_policy_duration_seconds", Buckets: buckets,
			Help: "Duration in seconds to apply a policy to a resource template.",
		}, result),
		applyAttempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_apply_attempts_total",
			Help: "Number of attempts to apply a policy to a resource template.",
		}, result),
		preemptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_preemption_total",
			Help: "Number of preemptions between policies.",
		}, result),
	}
	return c, errors.Join(loop.RegisterMetric(registry, &c.matchDuration), loop.RegisterMetric(registry, &c.applyDuration),
		loop.RegisterMetric(registry, &c.applyAttempts), loop.RegisterMetric(registry, &c.preemptions))
}

func (c *counters) recordMatch(since time.Time) {
	c.matchDuration.Observe(time.Since(since).Seconds())
}

func (c *counters) recordApply(since time.Time, err error) {
	c.applyDuration.WithLabelValues(resultOf(err)).Observe(time.Since(since).Seconds())
	c.applyAttempts.WithLabelValues(resultOf(err)).Inc()
}

func (c *counters) recordPreemption(err error) {
	c.preemptions.WithLabelValues(resultOf(err)).Inc()
}

func resultOf(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}
