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

// write is a kind of request that changes something.
type write struct {
	// resource is plural, with its subresource: works/status.
	resource string
	verb     string
}

func (w write) String() string { return w.verb + " " + w.resource }

// writes is how often each kind of write happened.
type writes map[write]float64

func (w writes) total() float64 {
	var sum float64
	for _, count := range w {
		sum += count
	}
	return sum
}

// counters are those of one API server.
type counters struct {
	// started identifies the run of the server, by when it began.
	started float64
	// writes were counted since then.
	writes writes
}

// since returns what was written after an earlier reading. The counters of a
// server that was restarted in between began at zero.
func (c counters) since(before counters) writes {
	grown := writes{}
	for kind, count := range c.writes {
		if c.started == before.started {
			count -= before.writes[kind]
		}
		if count > 0 {
			grown[kind] = count
		}
	}
	return grown
}

const (
	requestsMetric = "apiserver_request_total"
	startedMetric  = "process_start_time_seconds"
)

var (
	writeVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

	// uncounted are resources whose writes say nothing about propagation: they
	// renew, narrate, or are questions in the form of a write.
	uncounted = []string{
		"leases", "events", "tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews",
		"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews", "serviceaccounts/token",
	}
)

// scrape reads the counters of one API server.
func scrape(ctx context.Context, c *cluster) (counters, error) {
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
	c := counters{writes: writes{}}
	for _, metric := range families[startedMetric].GetMetric() {
		c.started = metric.GetGauge().GetValue()
	}
	for _, metric := range families[requestsMetric].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if w, ok := writeFrom(labels); ok {
			c.writes[w] += metric.GetCounter().GetValue()
		}
	}
	return c, nil
}

// writeFrom tells which write a counter counts, if it is one that matters.
func writeFrom(labels map[string]string) (write, bool) {
	w := write{resource: labels["resource"], verb: labels["verb"]}
	if w.resource == "" { // a path that is no resource
		return write{}, false
	}
	if subresource := labels["subresource"]; subresource != "" {
		w.resource += "/" + subresource
	}
	return w, slices.Contains(writeVerbs, w.verb) && !slices.Contains(uncounted, w.resource)
}
