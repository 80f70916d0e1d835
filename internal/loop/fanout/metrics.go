package fanout

import "k8s.io/client-go/util/workqueue"

// noMetrics keeps the queues of clusters out of the metrics, because the number of clusters is not
// limited. The controllers have their own metrics per member.
type noMetrics struct{}

type noopMetric struct{}

func (noopMetric) Inc()            {}
func (noopMetric) Dec()            {}
func (noopMetric) Set(float64)     {}
func (noopMetric) Observe(float64) {}

func (noMetrics) NewDepthMetric(string) workqueue.GaugeMetric            { return noopMetric{} }
func (noMetrics) NewAddsMetric(string) workqueue.CounterMetric           { return noopMetric{} }
func (noMetrics) NewLatencyMetric(string) workqueue.HistogramMetric      { return noopMetric{} }
func (noMetrics) NewWorkDurationMetric(string) workqueue.HistogramMetric { return noopMetric{} }
func (noMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return noopMetric{}
}
func (noMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return noopMetric{}
}
func (noMetrics) NewRetriesMetric(string) workqueue.CounterMetric { return noopMetric{} }
