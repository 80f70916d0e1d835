package fanout

import "k8s.io/client-go/util/workqueue"

// noMetrics keeps the queues of single clusters out of the metrics: their number
// is not bounded, and the controllers count what they do per member anyway.
type noMetrics struct{}

type nothing struct{}

func (nothing) Inc()            {}
func (nothing) Dec()            {}
func (nothing) Set(float64)     {}
func (nothing) Observe(float64) {}

func (noMetrics) NewDepthMetric(string) workqueue.GaugeMetric            { return nothing{} }
func (noMetrics) NewAddsMetric(string) workqueue.CounterMetric           { return nothing{} }
func (noMetrics) NewLatencyMetric(string) workqueue.HistogramMetric      { return nothing{} }
func (noMetrics) NewWorkDurationMetric(string) workqueue.HistogramMetric { return nothing{} }
func (noMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return nothing{}
}
func (noMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return nothing{}
}
func (noMetrics) NewRetriesMetric(string) workqueue.CounterMetric { return nothing{} }
