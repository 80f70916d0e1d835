package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// writeKind is a resource with the verb of a write request.
type writeKind struct {
	// resource is the plural name, with the subresource: works/status.
	resource string
	verb     string
}

func (w writeKind) String() string { return w.verb + " " + w.resource }

// writeCounts is the number of write requests of each kind.
type writeCounts map[writeKind]float64

func (w writeCounts) total() float64 {
	var sum float64
	for _, count := range w {
		sum += count
	}
	return sum
}

// counters are the request counters of one API server.
type counters struct {
	// started is the start time of the server process. It identifies the process.
	started float64
	// writes are the requests since then, and events the writes of events since then.
	writes writeCounts
	events float64
}

// writesSince returns the writes after an earlier reading of the counters. If the server
// restarted after that reading, its counters began at zero.
func (c counters) writesSince(before counters) writeCounts {
	increase := writeCounts{}
	for kind, count := range c.writes {
		if c.started == before.started {
			count -= before.writes[kind]
		}
		if count > 0 {
			increase[kind] = count
		}
	}
	return increase
}

const (
	requestsMetric = "apiserver_request_total"
	startedMetric  = "process_start_time_seconds"
)

var (
	writeVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

	// ignoredResources are resources whose writes are not part of the propagation: renewals
	// of Leases, events, and reviews.
	ignoredResources = []string{
		"leases", "events", "tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews",
		"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews", "serviceaccounts/token",
	}
)

// scrapeCounters reads the counters of one API server.
func scrapeCounters(ctx context.Context, c *cluster) (counters, error) {
	text, err := c.typed.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return counters{}, fmt.Errorf("reading the metrics of %s: %w", c.name, err)
	}
	return parseCounters(bytes.NewReader(text))
}

func parseCounters(text io.Reader) (counters, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return counters{}, fmt.Errorf("parsing metrics: %w", err)
	}
	c := counters{writes: writeCounts{}}
	for _, metric := range families[startedMetric].GetMetric() {
		c.started = metric.GetGauge().GetValue()
	}
	for _, metric := range families[requestsMetric].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if w, ok := writeKindFrom(labels); ok {
			c.writes[w] += metric.GetCounter().GetValue()
		} else if w.resource == "events" && slices.Contains(writeVerbs, w.verb) {
			c.events += metric.GetCounter().GetValue()
		}
	}
	return c, nil
}

// writeKindFrom returns the kind of write that a counter counts, and whether the benchmark
// reports it.
func writeKindFrom(labels map[string]string) (writeKind, bool) {
	w := writeKind{resource: labels["resource"], verb: labels["verb"]}
	if w.resource == "" { // not a resource request
		return writeKind{}, false
	}
	if subresource := labels["subresource"]; subresource != "" {
		w.resource += "/" + subresource
	}
	return w, slices.Contains(writeVerbs, w.verb) && !slices.Contains(ignoredResources, w.resource)
}
