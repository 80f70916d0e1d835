package detector

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/access/observe"
)

// counters are the metrics of the detector.
type counters struct {
	match    prometheus.Histogram
	apply    *prometheus.HistogramVec
	attempts *prometheus.CounterVec
	preempts *prometheus.CounterVec
}

func newCounters(registry prometheus.Registerer) (*counters, error) {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 12)
	result := []string{"result"}
	c := &counters{
		match: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "resource_match_policy_duration_seconds", Buckets: buckets,
			Help: "Duration in seconds to find the policy for a resource template.",
		}),
		apply: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "resource_apply_policy_duration_seconds", Buckets: buckets,
			Help: "Duration in seconds to apply a policy to a resource template.",
		}, result),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_apply_attempts_total",
			Help: "Number of attempts to apply a policy to a resource template.",
		}, result),
		preempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_preemption_total",
			Help: "Number of preemptions between policies.",
		}, result),
	}
	return c, errors.Join(observe.Register(registry, &c.match), observe.Register(registry, &c.apply),
		observe.Register(registry, &c.attempts), observe.Register(registry, &c.preempts))
}

func (c *counters) matched(since time.Time) {
	c.match.Observe(time.Since(since).Seconds())
}

func (c *counters) applied(since time.Time, err error) {
	c.apply.WithLabelValues(resultOf(err)).Observe(time.Since(since).Seconds())
	c.attempts.WithLabelValues(resultOf(err)).Inc()
}

func (c *counters) preempted(err error) {
	c.preempts.WithLabelValues(resultOf(err)).Inc()
}

func resultOf(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}
