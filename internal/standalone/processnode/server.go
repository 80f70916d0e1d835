package processnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// routes are the paths of a kubelet that kubectl's commands lead to.
func (n *Node) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.serveLogs)
	for _, method := range []string{"GET", "POST"} {
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{container}", n.serveExec)
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{uid}/{container}", n.serveExec)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}", n.servePortForward)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}/{uid}", n.servePortForward)
		mux.HandleFunc(method+" /attach/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "this node does not attach to programs: use logs or exec", http.StatusBadRequest)
		})
	}
	return mux
}

// hosted is the Pod that a request is about. One that is not here is played by the
// simulator: nothing runs in it, and the answer says so.
func (n *Node) hosted(w http.ResponseWriter, r *http.Request) *pod {
	namespace, name := r.PathValue("namespace"), r.PathValue("pod")
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		if object := p.stored(); object.Namespace == namespace && object.Name == name {
			return p
		}
	}
	http.Error(w, fmt.Sprintf("Pod %s/%s is simulated: no program runs in it, so that there are no logs, and nothing to run commands in or to connect to. Only Pods of images %s* run programs here",
		namespace, name, programPrefix), http.StatusBadRequest)
	return nil
}

// containerOf is the container that a request is about.
func (n *Node) containerOf(w http.ResponseWriter, r *http.Request) *container {
	p := n.hosted(w, r)
	if p == nil {
		return nil
	}
	name := r.PathValue("container")
	for _, c := range append(append([]*container{}, p.containers...), p.inits...) {
		if c.spec.Name == name {
			return c
		}
	}
	http.Error(w, fmt.Sprintf("Pod %s has no container %q", p.key, name), http.StatusNotFound)
	return nil
}

func (n *Node) serveLogs(w http.ResponseWriter, r *http.Request) {
	c := n.containerOf(w, r)
	if c == nil {
		return
	}
	query, previous, err := logQueryOf(r, n.now())
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
	// An error after the first byte cannot be told any more: the answer ends.
	_ = readLog(r.Context(), path, log, query, flusher{w})
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

func logQueryOf(r *http.Request, now time.Time) (query logQuery, previous bool, err error) {
	q := r.URL.Query()
	query.tail = -1
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
	query.follow, query.timestamps, previous = claim("follow"), claim("timestamps"), claim("previous")
	if lines, ok := number("tailLines"); ok {
		query.tail = int(lines)
	}
	if age, ok := number("sinceSeconds"); ok {
		query.since = now.Add(-time.Duration(age) * time.Second)
	}
	if limit, ok := number("limitBytes"); ok {
		query.limit = limit
	}
	if text := q.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		problems = append(problems, err)
		query.since = since
	}
	return query, previous, errors.Join(problems...)
}

var errNoLog = errors.New("there is no log")

// log is where the present life of the container writes, or wrote the previous one.
func (c *container) log(previous bool) (path string, log *logFile, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	life, state := c.status.RestartCount, c.status.State
	// While the next life is waited for, the one that ended is the previous one, and the
	// present one as well.
	if previous && state.Waiting == nil {
		life--
	}
	path = c.logPath(life)
	if _, err := os.Stat(path); err != nil {
		return "", nil, fmt.Errorf("container %q: %w: %s", c.spec.Name, errNoLog, reasonOf(state))
	}
	return path, c.logs[life], nil
}

func reasonOf(state corev1.ContainerState) string {
	switch {
	case state.Waiting != nil:
		return "it is waiting: " + state.Waiting.Reason + " " + state.Waiting.Message
	case state.Terminated != nil:
		return "it ended: " + state.Terminated.Reason + " " + state.Terminated.Message
	default:
		return "it has written nothing"
	}
}

// exec runs a command in the container.
func (c *container) exec(ctx context.Context, words []string, out io.Writer) error {
	return c.execWith(ctx, words, execStreams{stdout: out, stderr: out})
}

var errNotRunning = errors.New("its program is not running")

func (c *container) execWith(ctx context.Context, words []string, streams execStreams) error {
	c.mu.Lock()
	running, command := c.process, c.command
	c.mu.Unlock()
	if running == nil {
		return fmt.Errorf("container %q: %w", c.spec.Name, errNotRunning)
	}
	cmd, err := command.within(ctx, words)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = streams.stdout, streams.stderr
	if streams.stdin != nil {
		// Not cmd.Stdin: a command that has ended does not wait for somebody to type.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return fmt.Errorf("making a pipe: %w", err)
		}
		go func() {
			_, _ = io.Copy(stdin, streams.stdin)
			_ = stdin.Close()
		}()
	}
	if err := c.pod.node.spawner.start(cmd); err != nil {
		return err
	}
	return cmd.Wait() //nolint:wrapcheck // callers read the exit code
}
