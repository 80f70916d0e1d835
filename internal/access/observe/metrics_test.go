package observe

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAMetricIsRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := func(labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tries_total", Help: "Tries."}, labels)
	}
	first, err := Registered(registry, counter("result"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := Registered(registry, counter("result"))
	if err != nil || second != first {
		t.Errorf("the second of a name is %p, %v; want the first, %p", second, err, first)
	}
	if _, err := Registered(registry, counter("result", "member")); err == nil {
		t.Error("two metrics of one name with other labels are taken")
	}
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tries_total", Help: "Tries."}, []string{"result"})
	if _, err := Registered(registry, gauge); err == nil {
		t.Error("a gauge is taken for a counter")
	}
}
