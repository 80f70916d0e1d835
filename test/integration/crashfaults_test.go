package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// crashSide is the side of a write on which a process crashes. Before the write the request is
// never sent. After the write the object is stored, but the process does not get the response.
type crashSide string

const (
	beforeWrite crashSide = "before"
	afterWrite  crashSide = "after"
)

// observedWrite is a write of the components for one scenarioInstance.
type observedWrite struct {
	// writer is a controller, the scheduler, or the status writer.
	writer string
	// verb and resource are those of the HTTP request.
	verb, resource string
	// server is the name of the API server, followed by the name of the member if the object is in
	// an execution namespace. part is the part of the object name that distinguishes the objects of
	// an instance.
	server, part string
	// occurrence is the number of this write among the equal writes of the instance, from 1.
	occurrence int
}

func (o observedWrite) String() string {
	return fmt.Sprintf("%-14s %-6s %-24s %-22s %-9s %d", o.writer, o.verb, o.resource, o.server, o.part, o.occurrence)
}

// crashPoint is the write at which the process of an instance crashes.
type crashPoint struct {
	write observedWrite
	side  crashSide
	// inEveryRun reports whether every run makes the write. Status reports are batched, so their
	// number depends on timing.
	inEveryRun bool
}

func (c crashPoint) String() string { return string(c.side) + " " + c.write.String() }

var errCrashed = errors.New("the process has crashed")

// processRun is one run of the components. It intercepts all requests to API servers and records
// the writes for each instance.
type processRun struct {
	// hosts maps the hosts of API servers to their names.
	hosts map[string]string

	mu            sync.Mutex
	killed        bool
	points        map[string]crashPoint
	traces        map[string]*writeTrace
	lastWriteTime time.Duration
	lastWrite     observedWrite
}

// writeTrace records the writes of one run for an instance.
type writeTrace struct {
	counts map[observedWrite]int
	writes []observedWrite
	// crashed reports whether the crash point was reached.
	crashed bool
}

func newProcessRun(hosts map[string]string) *processRun {
	return &processRun{hosts: hosts, points: map[string]crashPoint{}, traces: map[string]*writeTrace{}, lastWriteTime: clock.now()}
}

// wrapTransport returns a transport that passes requests through the process run.
func (p *processRun) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return &crashTransport{run: p, next: next}
}

type crashTransport struct {
	run  *processRun
	next http.RoundTripper
}

// WrappedRoundTripper gives access to the wrapped transport, to close its idle connections.
func (c *crashTransport) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip implements http.RoundTripper.
func (c *crashTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return c.next.RoundTrip(r)
	}
	instance, sent, err := c.run.classifyRequest(r)
	if err != nil {
		return nil, err
	}
	crashes, err := c.run.shouldCrashAfter(instance, sent)
	if err != nil {
		return nil, err
	}
	response, err := c.next.RoundTrip(r)
	if err != nil || instance == "" || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	c.run.recordWrite(instance, sent, crashes)
	if crashes {
		return nil, errors.Join(errCrashed, response.Body.Close())
	}
	return response, nil
}

// shouldCrashAfter reports whether the process crashes after the write. It returns errCrashed if the
// process has already crashed or crashes before the write.
func (p *processRun) shouldCrashAfter(instance string, sent observedWrite) (crashes bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return false, errCrashed
	}
	if instance == "" {
		return false, nil
	}
	trace := p.traceOf(instance)
	if trace.crashed {
		return false, errCrashed
	}
	point, hasPoint := p.points[instance]
	sent.occurrence = trace.counts[sent] + 1
	if !hasPoint || point.write != sent {
		return false, nil
	}
	if point.side == beforeWrite {
		trace.crashed = true
		return false, errCrashed
	}
	return true, nil
}

func (p *processRun) recordWrite(instance string, sent observedWrite, crashes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	trace := p.traceOf(instance)
	trace.counts[sent]++
	sent.occurrence = trace.counts[sent]
	trace.writes = append(trace.writes, sent)
	trace.crashed = trace.crashed || crashes
	p.lastWriteTime, p.lastWrite = clock.now(), sent
}

// traceOf returns the trace of an instance. The caller holds p.mu.
func (p *processRun) traceOf(instance string) *writeTrace {
	trace, ok := p.traces[instance]
	if !ok {
		trace = &writeTrace{counts: map[observedWrite]int{}}
		p.traces[instance] = trace
	}
	return trace
}

// kill rejects all further writes.
func (p *processRun) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
}

// allCrashed reports whether every instance whose crash point is in every run has crashed.
func (p *processRun) allCrashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for instance, point := range p.points {
		if point.inEveryRun && !p.traceOf(instance).crashed {
			return false
		}
	}
	return len(p.points) > 0
}

// checkNoWritesFor returns an error if the last write was less than the given time ago.
func (p *processRun) checkNoWritesFor(during time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since := clock.since(p.lastWriteTime); since < during {
		return fmt.Errorf("the last write was %s ago: %s", since, p.lastWrite)
	}
	return nil
}

// writesOf returns the writes for an instance in their order, and whether its crash point was
// reached.
func (p *processRun) writesOf(instance string) (writes []observedWrite, crashed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	trace := p.traceOf(instance)
	return append([]observedWrite(nil), trace.writes...), trace.crashed
}

var (
	// instanceNamePattern matches the name of an instance. The names of all its parts contain it.
	instanceNamePattern = regexp.MustCompile(`crash-[a-z0-9]{5}`)
	partNamePattern     = regexp.MustCompile(`(?:([a-z]+)-)?` + instanceNamePattern.String())
	requestInfoFactory  = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
)

// ignoredResources are resources whose writes do not affect the end state.
var ignoredResources = sets.New("events", "leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews")

// classifyRequest returns the instance that a request writes, if any, and describes the write.
func (p *processRun) classifyRequest(r *http.Request) (instance string, sent observedWrite, err error) {
	info, err := requestInfoFactory.NewRequestInfo(r)
	if err != nil {
		return "", observedWrite{}, fmt.Errorf("classifying %s %s: %w", r.Method, r.URL, err)
	}
	if ignoredResources.Has(info.Resource) {
		return "", observedWrite{}, nil
	}
	name := info.Name
	if name == "" {
		if name, err = createdObjectName(r); err != nil {
			return "", observedWrite{}, err
		}
	}
	part := partNamePattern.FindStringSubmatch(name)
	if part == nil {
		return "", observedWrite{}, nil
	}
	sent = observedWrite{writer: callingComponent(), verb: r.Method, resource: info.Resource, server: p.hosts[r.URL.Host], part: part[1]}
	if info.Subresource != "" {
		sent.resource += "/" + info.Subresource
	}
	if sent.part == "" {
		sent.part = "namespace"
	}
	if cluster, ok := strings.CutPrefix(info.Namespace, "karmada-es-"); ok {
		sent.server += " for " + cluster
	}
	return instanceNamePattern.FindString(name), sent, nil
}

// createdObjectName returns the name of the object in a create request. It restores the body.
func createdObjectName(r *http.Request) (string, error) {
	if r.Body == nil {
		return "", nil
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return "", fmt.Errorf("reading the body of %s %s: %w", r.Method, r.URL, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	object := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(body, object); err != nil {
		return partNamePattern.FindString(string(body)), nil //nolint:nilerr // the body is not JSON, but contains names unchanged
	}
	return object.Name, nil
}

// callingComponent returns the part of Karmada that makes the request of this goroutine.
func callingComponent() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if _, relativeName, ok := strings.Cut(frame.Function, "karmada.io/karmada/internal/"); ok {
			for _, layer := range []string{"controllers/", "loop.(*StatusWriter)", "scheduler"} {
				if strings.HasPrefix(relativeName, layer) {
					name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(relativeName, "controllers/"), "access/"), ".")
					return name
				}
			}
		}
		if !more {
			return "?"
		}
	}
}
