// Package kubelet serves the kubelet paths for logs, exec, attach and port-forward of kubectl.
//
// The caller of Handler must accept only connections of the API server, because exec runs
// commands. The package has no list of Pods: Node.FindPod finds the Pod of a request. If the Pod
// does not run on this node, the response says that the Pod is simulated.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Pod is a Pod whose programs run on this node.
type Pod interface {
	// Address returns the IP address at which the programs listen.
	Address() string
	// Container returns a container of the Pod by name, nil if there is none.
	Container(name string) Container
}

// Container is a container of a Pod, running or not.
type Container interface {
	// Log returns the log file of the current or the previous run of the container. log is nil if
	// that run has ended.
	Log(previous bool) (path string, log *LogFile, err error)
	// Exec runs a command in the container and returns when the command has ended. A non-zero exit
	// code is returned as an *exec.ExitError.
	Exec(ctx context.Context, command []string, streams Streams) error
	// Attach copies the output of the running program until the program ends.
	Attach(ctx context.Context, streams Streams) error
}

// Streams are the standard streams of a command. nil means no stream.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Node serves the kubelet requests of one node.
type Node struct {
	// FindPod returns a Pod, or nil if the Pod does not run on this node.
	FindPod func(namespace, name string) Pod
	// ImagePrefix is the prefix that the image names of all Pods on this node must have. The error
	// about a Pod with another image names the prefix.
	ImagePrefix string
	Now         func() time.Time
}

// Handler returns the HTTP handler for all kubelet paths that the node serves.
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

// findPod returns the Pod of a request. If the Pod does not run on this node, findPod writes a
// response that says that the Pod is simulated, and returns nil.
func (n Node) findPod(w http.ResponseWriter, r *http.Request) Pod {
	namespace, name := r.PathValue("namespace"), r.PathValue("pod")
	if found := n.FindPod(namespace, name); found != nil {
		return found
	}
	http.Error(w, fmt.Sprintf("Pod %s/%s is simulated: no program runs in it, so it has no logs and supports no exec, attach or port-forward. Only Pods with images %s* run programs here",
		namespace, name, n.ImagePrefix), http.StatusBadRequest)
	return nil
}

// findContainer returns the container of a request. If there is no such container, findContainer
// writes an error response and returns nil.
func (n Node) findContainer(w http.ResponseWriter, r *http.Request) Container {
	p := n.findPod(w, r)
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
	c := n.findContainer(w, r)
	if c == nil {
		return
	}
	query, previous, err := parseLogQuery(r, n.Now())
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
	// An error cannot be reported after the first byte was sent, so the response just ends.
	_ = ReadLog(r.Context(), path, log, query, flushWriter{w})
}

// flushWriter flushes the response after every write, because clients may follow the log.
type flushWriter struct{ http.ResponseWriter }

// Write implements io.Writer.
func (f flushWriter) Write(text []byte) (int, error) {
	n, err := f.ResponseWriter.Write(text)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

func parseLogQuery(r *http.Request, now time.Time) (query LogQuery, previous bool, err error) {
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
			problems = append(problems, fmt.Errorf("parsing %s: %w", name, err))
		}
		return value, err == nil
	}
	isTrue := func(name string) bool {
		value, err := strconv.ParseBool(q.Get(name))
		return err == nil && value
	}
	query.Follow, query.Timestamps, previous = isTrue("follow"), isTrue("timestamps"), isTrue("previous")
	if lines, ok := number("tailLines"); ok {
		query.Tail = int(lines)
	}
	if age, ok := number("sinceSeconds"); ok {
		query.Since = now.Add(-time.Duration(age) * time.Second)
	}
	if limit, ok := number("limitBytes"); ok {
		query.LimitBytes = limit
	}
	if text := q.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		problems = append(problems, err)
		query.Since = since
	}
	return query, previous, errors.Join(problems...)
}
