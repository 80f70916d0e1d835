// Package kubelet answers "what may the API server ask a node about its Pods?": the
// paths of a kubelet to which logs, exec, attach and port-forward of kubectl lead.
//
// Whoever serves it must let in the API server only: it runs commands. It knows no
// Pods of its own, and says of one that nobody runs here that it is simulated.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"karmada.io/karmada/internal/standalone/processnode/containerlog"
)

// Pod is a Pod whose programs run here.
type Pod interface {
	// Address is where its programs listen.
	Address() string
	// Container is one of its containers, nil if it has none of that name.
	Container(name string) Container
}

// Container is a container that is, was or will be running.
type Container interface {
	// Log is where the present life of the container writes, or wrote the previous one;
	// log is nil if nobody writes it any more.
	Log(previous bool) (path string, log *containerlog.File, err error)
	// Exec runs a command in the container and returns when it has ended; an exit code
	// is an *exec.ExitError.
	Exec(ctx context.Context, words []string, streams Streams) error
	// Attach copies what the running program writes until it ends.
	Attach(ctx context.Context, streams Streams) error
}

// Streams are where a command reads and writes; nil is nowhere.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Node is what is asked.
type Node struct {
	// Find returns the Pod, nil if it does not run here.
	Find func(namespace, name string) Pod
	// Images is how the names of the images begin that run here, for the answer about
	// others.
	Images string
	Now    func() time.Time
}

// Handler serves the paths.
func (n Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.serveLogs)
	for _, method := range []string{"GET", "POST"} {
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{container}", n.serveExec)
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{uid}/{container}", n.serveExec)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}", n.servePortForward)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}/{uid}", n.servePortForward)
		mux.HandleFunc(method+" /attach/{namespace}/{pod}/{container}", n.serveAttach)
		mux.HandleFunc(method+" /attach/{namespace}/{pod}/{uid}/{container}", n.serveAttach)
	}
	return mux
}

// hosted is the Pod that a request is about. One that is not here is played by the
// simulator: nothing runs in it, and the answer says so.
func (n Node) hosted(w http.ResponseWriter, r *http.Request) Pod {
	namespace, name := r.PathValue("namespace"), r.PathValue("pod")
	if found := n.Find(namespace, name); found != nil {
		return found
	}
	http.Error(w, fmt.Sprintf("Pod %s/%s is simulated: no program runs in it, so that there are no logs, and nothing to run commands in or to connect to. Only Pods of images %s* run programs here",
		namespace, name, n.Images), http.StatusBadRequest)
	return nil
}

// containerOf is the container that a request is about.
func (n Node) containerOf(w http.ResponseWriter, r *http.Request) Container {
	p := n.hosted(w, r)
	if p == nil {
		return nil
	}
	name := r.PathValue("container")
	if found := p.Container(name); found != nil {
		return found
	}
	http.Error(w, fmt.Sprintf("Pod %s/%s has no container %q", r.PathValue("namespace"), r.PathValue("pod"), name), http.StatusNotFound)
	return nil
}

func (n Node) serveLogs(w http.ResponseWriter, r *http.Request) {
	c := n.containerOf(w, r)
	if c == nil {
		return
	}
	query, previous, err := logQueryOf(r, n.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path, log, err := c.Log(previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	// An error after the first byte cannot be told any more: the answer ends.
	_ = containerlog.Read(r.Context(), path, log, query, flusher{w})
}

// flusher sends every line at once, for whoever follows.
type flusher struct{ http.ResponseWriter }

// Write implements io.Writer.
func (f flusher) Write(text []byte) (int, error) {
	n, err := f.ResponseWriter.Write(text)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

func logQueryOf(r *http.Request, now time.Time) (query containerlog.Query, previous bool, err error) {
	q := r.URL.Query()
	query.Tail = -1
	var problems []error
	number := func(name string) (int64, bool) {
		text := q.Get(name)
		if text == "" {
			return 0, false
		}
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			problems = append(problems, fmt.Errorf("reading %s: %w", name, err))
		}
		return value, err == nil
	}
	claim := func(name string) bool {
		claimed, err := strconv.ParseBool(q.Get(name))
		return err == nil && claimed
	}
	query.Follow, query.Timestamps, previous = claim("follow"), claim("timestamps"), claim("previous")
	if lines, ok := number("tailLines"); ok {
		query.Tail = int(lines)
	}
	if age, ok := number("sinceSeconds"); ok {
		query.Since = now.Add(-time.Duration(age) * time.Second)
	}
	if limit, ok := number("limitBytes"); ok {
		query.Limit = limit
	}
	if text := q.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		problems = append(problems, err)
		query.Since = since
	}
	return query, previous, errors.Join(problems...)
}
