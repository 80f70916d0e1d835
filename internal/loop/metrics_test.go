package loop

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRegisterMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := func(labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tries_total", Help: "Tries."}, labels)
	}
	first, second := counter("result"), counter("result")
	made := first
	if err := errors.Join(RegisterMetric(registry, &first), RegisterMetric(registry, &second)); err != nil {
		t.Fatal(err)
	}
	if first != made || second != made {
		t.Errorf("the first metric became %p and the second %p; both should be %p", first, second, made)
	}
	other := counter("result", "member")
	if err := RegisterMetric(registry, &other); err == nil {
		t.Error("two metrics with one name and other labels are registered")
	}
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tries_total", Help: "Tries."}, []string{"result"})
	if err := RegisterMetric(registry, &gauge); err == nil {
		t.Error("a gauge is registered over a counter")
	}
}
