package scheduler

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"karmada.io/karmada/internal/domain/placement"
)

func TestStepDurationMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	now := noon.Time
	observer := m.observer(func() time.Time { return now })
	for _, begin := range []func() func(){
		func() func() { return observer.Step(placement.StepAssignReplicas) },
		func() func() { return observer.ExtensionPoint(placement.ExtensionPointFilter) },
		func() func() { return observer.Plugin(placement.ExtensionPointScore, placement.PluginClusterLocality) },
	} {
		end := begin()
		now = now.Add(250 * time.Millisecond)
		end()
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			got[name] = metric.GetHistogram().GetSampleSum()
		}
	}
	want := map[string]float64{
		"karmada_scheduler_scheduling_algorithm_duration_seconds schedule_step=AssignReplicas":                            0.25,
		"karmada_scheduler_framework_extension_point_duration_seconds extension_point=Filter result=success":              0.25,
		"karmada_scheduler_plugin_execution_duration_seconds extension_point=Score plugin=ClusterLocality result=success": 0.25,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestMetricsOfSecondScheduler(t *testing.T) {
	registry := prometheus.NewRegistry()
	for waiting := range 2 {
		m, err := newMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.registerPendingGauge("active", func() int { return waiting + 1 }); err != nil {
			t.Fatal(err)
		}
		m.recordAttempt(placement.ScaleSchedule, nil, time.Millisecond)
		m.recordAttempt(placement.ScaleSchedule, errors.New("boom"), time.Millisecond)
		m.countEnqueued(causeAdd)
		if got := testutil.ToFloat64(m.attempts.WithLabelValues("scheduled", "ScaleSchedule")); got != float64(waiting+1) {
			t.Errorf("%v attempts counted", got)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "scheduler_pending_bindings" && family.GetMetric()[0].GetGauge().GetValue() != 2 {
			t.Errorf("pending is not counted by the last scheduler: %v", family.GetMetric())
		}
	}
}
