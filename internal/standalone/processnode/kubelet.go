package processnode

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// standardStreams are the standard streams of a command. nil means no stream.
type standardStreams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Handler returns the handler for the kubelet paths of health, logs, exec, attach and port-forward. The
// caller must accept only connections of the API server, because exec runs programs.
func (n *Node) Handler() http.Handler {
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

// requestedPod returns the Pod in a request's path. If the Pod does not run on this node, requestedPod
// responds that the Pod is simulated, and returns nil.
func (n *Node) requestedPod(w http.ResponseWriter, r *http.Request) *pod {
	namespace, name := r.PathValue("namespace"), r.PathValue("pod")
	if found := n.findPod(namespace, name); found != nil {
		return found
	}
	http.Error(w, fmt.Sprintf("Pod %s/%s is simulated: no program runs in it, so it has no logs and supports no exec, attach or port-forward. Only Pods with images %s* run programs here",
		namespace, name, Image), http.StatusBadRequest)
	return nil
}

// requestedContainer returns the container in a request's path. If there is no such container,
// requestedContainer writes an error response and returns nil.
func (n *Node) requestedContainer(w http.ResponseWriter, r *http.Request) *container {
	p := n.requestedPod(w, r)
	if p == nil {
		return nil
	}
	name := r.PathValue("container")
	if found := p.findContainer(name); found != nil {
		return found
	}
	http.Error(w, fmt.Sprintf("Pod %s/%s has no container %q", r.PathValue("namespace"), r.PathValue("pod"), name), http.StatusNotFound)
	return nil
}

func (n *Node) serveLogs(w http.ResponseWriter, r *http.Request) {
	c := n.requestedContainer(w, r)
	if c == nil {
		return
	}
	query, previous, err := parseLogQuery(r, n.now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path, log, err := c.log(previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	// An error cannot be reported after the first byte was sent, so the response just ends.
	_ = readLog(r.Context(), path, log, query, flushWriter{w})
}

// flushWriter flushes the response after every write, because clients may follow a log.
type flushWriter struct{ http.ResponseWriter }

// Write implements io.Writer.
func (f flushWriter) Write(text []byte) (int, error) {
	n, err := f.ResponseWriter.Write(text)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

func parseLogQuery(r *http.Request, now time.Time) (query logQuery, previous bool, err error) {
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
