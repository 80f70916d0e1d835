package detector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/domain/policy"
)

// metricSample is one sample of a metric as it is scraped.
type metricSample struct {
	Kind    string
	Labels  map[string]string
	Count   uint64
	Buckets []float64
}

func scrape(t *testing.T, registry prometheus.Gatherer) map[string][]metricSample {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]metricSample{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			one := metricSample{Kind: family.GetType().String(), Labels: map[string]string{}}
			for _, label := range metric.GetLabel() {
				one.Labels[label.GetName()] = label.GetValue()
			}
			if one.Kind == "COUNTER" {
				one.Count = uint64(metric.GetCounter().GetValue())
			} else {
				one.Count = metric.GetHistogram().GetSampleCount()
			}
			for _, bucket := range metric.GetHistogram().GetBucket() {
				one.Buckets = append(one.Buckets, bucket.GetUpperBound())
			}
			found[family.GetName()] = append(found[family.GetName()], one)
		}
	}
	return found
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := newCounters(registry)
	if err != nil {
		t.Fatal(err)
	}
	metrics.recordMatch(time.Now())
	for _, err := range []error{nil, nil, policy.ErrTerminating} {
		metrics.recordApply(time.Now(), err)
		metrics.recordPreemption(err)
	}
	buckets := []float64{0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048}
	byResult := func(kind string, buckets []float64) []metricSample {
		return []metricSample{
			{Kind: kind, Labels: map[string]string{"result": "error"}, Count: 1, Buckets: buckets},
			{Kind: kind, Labels: map[string]string{"result": "success"}, Count: 2, Buckets: buckets},
		}
	}
	want := map[string][]metricSample{
		"resource_match_policy_duration_seconds": {{Kind: "HISTOGRAM", Labels: map[string]string{}, Count: 1, Buckets: buckets}},
		"resource_apply_policy_duration_seconds": byResult("HISTOGRAM", buckets),
		"policy_apply_attempts_total":            byResult("COUNTER", nil),
		"policy_preemption_total":                byResult("COUNTER", nil),
	}
	if diff := cmp.Diff(want, scrape(t, registry)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if _, err := newCounters(registry); err != nil {
		t.Errorf("a second control plane in the process: %v", err)
	}
}

func TestOnlyUnclaimedTemplatesAreMatched(t *testing.T) {
	h := newFixture(t, deployment(1), propagationPolicy("p"))
	for range 3 {
		h.reconcile(policy.TemplateChanged)
	}
	found := scrape(t, h.registry)
	if got := found["resource_match_policy_duration_seconds"][0].Count; got != 1 {
		t.Errorf("%d matches were measured for one template", got)
	}
	if got := found["policy_apply_attempts_total"][0].Count; got != 3 {
		t.Errorf("%d attempts were counters for three passes", got)
	}
}
