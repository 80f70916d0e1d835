package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// requestKind is a resource with the verb of a request.
type requestKind struct {
	// resource is the plural name, with the subresource: works/status.
	resource string
	verb     string
}

func (k requestKind) String() string { return k.verb + " " + k.resource }

func (k requestKind) isWrite() bool { return slices.Contains(writeVerbs, k.verb) }

// requestCounts is the number of requests of each kind.
type requestCounts map[requestKind]float64

func (r requestCounts) total() float64 {
	var sum float64
	for _, count := range r {
		sum += count
	}
	return sum
}

// writes returns the counts of the write requests, and reads those of the others.
func (r requestCounts) writes() requestCounts {
	return r.without(func(k requestKind) bool { return !k.isWrite() })
}
func (r requestCounts) reads() requestCounts { return r.without(requestKind.isWrite) }

func (r requestCounts) without(isExcluded func(requestKind) bool) requestCounts {
	kept := maps.Clone(r)
	maps.DeleteFunc(kept, func(k requestKind, _ float64) bool { return isExcluded(k) })
	return kept
}

// counters are the request counters of one API server.
type counters struct {
	// started is the start time of the server process. It identifies the process.
	started float64
	// requests are the requests since then, and writtenBytes is the size of the request bodies.
	requests     requestCounts
	writtenBytes float64
}

// since returns the increase of the counters after an earlier reading. If the server restarted after
// that reading, its counters began at zero.
func (c counters) since(before counters) counters {
	if c.started != before.started {
		before = counters{}
	}
	increase := counters{started: c.started, requests: requestCounts{}, writtenBytes: c.writtenBytes - before.writtenBytes}
	for kind, count := range c.requests {
		if count -= before.requests[kind]; count > 0 {
			increase.requests[kind] = count
		}
	}
	return increase
}

const (
	requestsMetric  = "apiserver_request_total"
	bodyBytesMetric = "apiserver_request_body_size_bytes"
	startedMetric   = "process_start_time_seconds"
)

var (
	writeVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

	// ignoredResources are resources whose requests are not part of the propagation: renewals of
	// Leases, and reviews.
	ignoredResources = []string{
		"leases", "tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews",
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
	c := counters{requests: requestCounts{}}
	for _, metric := range families[startedMetric].GetMetric() {
		c.started = metric.GetGauge().GetValue()
	}
	for _, metric := range families[requestsMetric].GetMetric() {
		if kind := requestKindOf(metric); isCounted(kind.resource) {
			c.requests[kind] += metric.GetCounter().GetValue()
		}
	}
	for _, metric := range families[bodyBytesMetric].GetMetric() {
		if isCounted(requestKindOf(metric).resource) {
			c.writtenBytes += metric.GetHistogram().GetSampleSum()
		}
	}
	return c, nil
}

// requestKindOf returns the kind of the requests that the given metric counts. The resource is empty
// if they are not resource requests.
func requestKindOf(metric *dto.Metric) requestKind {
	labels := map[string]string{}
	for _, label := range metric.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	kind := requestKind{resource: labels["resource"], verb: labels["verb"]}
	if subresource := labels["subresource"]; kind.resource != "" && subresource != "" {
		kind.resource += "/" + subresource
	}
	return kind
}

// isCounted returns whether the benchmark reports requests for the given resource.
func isCounted(resource string) bool {
	return resource != "" && !slices.Contains(ignoredResources, resource)
}
