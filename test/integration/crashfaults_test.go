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

// side is where a process dies: before a write, which then was never sent, or
// after it, when it is stored and nobody heard of it.
type side string

const (
	before side = "before"
	after  side = "after"
)

// write is a kind of write that components make for an instance of the scenario.
type write struct {
	// who makes it: a controller, the scheduler, or the writer of reports.
	who string
	// verb and resource are those of the request.
	verb, resource string
	// where is the API server, or the member that a Work is for; what the part of the
	// instance that is written.
	where, what string
	// nth counts the equal ones.
	nth int
}

func (w write) String() string {
	return fmt.Sprintf("%-14s %-6s %-24s %-22s %-9s %d", w.who, w.verb, w.resource, w.where, w.what, w.nth)
}

// point is where the process of an instance dies.
type point struct {
	write write
	side  side
	// certain tells that the write is made in every run. Of reports on status it
	// depends on the time how many become one.
	certain bool
}

func (p point) String() string { return string(p.side) + " " + p.write.String() }

var errKilled = errors.New("the process is dead")

// life is one life of the components. It stands between them and all API servers
// and sees every write that is about an instance.
type life struct {
	// hosts are the names of the API servers.
	hosts map[string]string

	mu        sync.Mutex
	dead      bool
	points    map[string]point
	instances map[string]*trace
	last      time.Duration
	lastWrite write
}

// trace is what one life has written about an instance.
type trace struct {
	counts map[write]int
	made   []write
	// dead tells that the point was reached.
	dead bool
}

func newLife(hosts map[string]string) *life {
	return &life{hosts: hosts, points: map[string]point{}, instances: map[string]*trace{}, last: clock.now()}
}

// wrap puts the life in front of a transport.
func (l *life) wrap(next http.RoundTripper) http.RoundTripper { return &mortal{life: l, next: next} }

type mortal struct {
	life *life
	next http.RoundTripper
}

// WrappedRoundTripper lets those who close idle connections through.
func (m *mortal) WrappedRoundTripper() http.RoundTripper { return m.next }

// RoundTrip implements http.RoundTripper.
func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return m.next.RoundTrip(r)
	}
	instance, made, err := m.life.classify(r)
	if err != nil {
		return nil, err
	}
	dies, err := m.life.sends(instance, made)
	if err != nil {
		return nil, err
	}
	response, err := m.next.RoundTrip(r)
	if err != nil || instance == "" || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	m.life.sent(instance, made, dies)
	if dies {
		return nil, errors.Join(errKilled, response.Body.Close())
	}
	return response, nil
}

// sends tells whether the process dies as soon as the write is stored, or fails
// because it is dead already.
func (l *life) sends(instance string, made write) (dies bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false, errKilled
	}
	if instance == "" {
		return false, nil
	}
	of := l.trace(instance)
	if of.dead {
		return false, errKilled
	}
	end, mortal := l.points[instance]
	made.nth = of.counts[made] + 1
	if !mortal || end.write != made {
		return false, nil
	}
	if end.side == before {
		of.dead = true
		return false, errKilled
	}
	return true, nil
}

func (l *life) sent(instance string, made write, dies bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.trace(instance)
	of.counts[made]++
	made.nth = of.counts[made]
	of.made = append(of.made, made)
	of.dead = of.dead || dies
	l.last, l.lastWrite = clock.now(), made
}

// trace is that of an instance; l.mu is held.
func (l *life) trace(instance string) *trace {
	of, ok := l.instances[instance]
	if !ok {
		of = &trace{counts: map[write]int{}}
		l.instances[instance] = of
	}
	return of
}

// end lets nothing more be written.
func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}

// over tells whether every instance that is certain to die is dead.
func (l *life) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for instance, end := range l.points {
		if end.certain && !l.trace(instance).dead {
			return false
		}
	}
	return len(l.points) > 0
}

// quiet tells how it is not true that nothing was written for a while.
func (l *life) quiet(during time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since := clock.since(l.last); since < during {
		return fmt.Errorf("the last write was %s ago: %s", since, l.lastWrite)
	}
	return nil
}

// written are the writes about an instance in their order, and whether its point
// was reached.
func (l *life) written(instance string) (made []write, dead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.trace(instance)
	return append([]write(nil), of.made...), of.dead
}

var (
	// instanceName is the name of an instance, which is in the names of all its parts.
	instanceName = regexp.MustCompile(`crash-[a-z0-9]{5}`)
	partName     = regexp.MustCompile(`(?:([a-z]+)-)?` + instanceName.String())
	requests     = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
)

// unheeded are resources whose writes no end state depends on.
var unheeded = sets.New("events", "leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews")

// classify tells about which instance a write is, if any, and of which kind it is.
func (l *life) classify(r *http.Request) (instance string, made write, err error) {
	info, err := requests.NewRequestInfo(r)
	if err != nil {
		return "", write{}, fmt.Errorf("classifying %s %s: %w", r.Method, r.URL, err)
	}
	if unheeded.Has(info.Resource) {
		return "", write{}, nil
	}
	name := info.Name
	if name == "" {
		if name, err = nameIn(r); err != nil {
			return "", write{}, err
		}
	}
	part := partName.FindStringSubmatch(name)
	if part == nil {
		return "", write{}, nil
	}
	made = write{who: author(), verb: r.Method, resource: info.Resource, where: l.hosts[r.URL.Host], what: part[1]}
	if info.Subresource != "" {
		made.resource += "/" + info.Subresource
	}
	if made.what == "" {
		made.what = "namespace"
	}
	if cluster, ok := strings.CutPrefix(info.Namespace, "karmada-es-"); ok {
		made.where += " for " + cluster
	}
	return instanceName.FindString(name), made, nil
}

// nameIn is the name of the object that a request creates. The body can be read
// again.
func nameIn(r *http.Request) (string, error) {
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
		return partName.FindString(string(body)), nil //nolint:nilerr // it is not JSON, but names stand in it as they are
	}
	return object.Name, nil
}

// author is the part of Karmada that makes the request of this goroutine.
func author() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if _, inside, ok := strings.Cut(frame.Function, "karmada.io/karmada/internal/"); ok {
			for _, layer := range []string{"controllers/", "access/statuswriter", "scheduler"} {
				if strings.HasPrefix(inside, layer) {
					name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(inside, "controllers/"), "access/"), ".")
					return name
				}
			}
		}
		if !more {
			return "?"
		}
	}
}
