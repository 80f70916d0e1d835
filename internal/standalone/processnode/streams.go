package processnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	remotecommandconsts "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

const (
	// streamsTimeout is how long a client may take to open the requested streams.
	streamsTimeout = 30 * time.Second
	// idleTimeout is the time without traffic after which a connection is closed.
	idleTimeout         = 4 * time.Hour
	portForwardProtocol = "portforward.k8s.io"
)

// serveExec runs a command and sends its exit code.
func (n *Node) serveExec(w http.ResponseWriter, r *http.Request) {
	c := n.requestedContainer(w, r)
	if c == nil {
		return
	}
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		http.Error(w, "the request has no command", http.StatusBadRequest)
		return
	}
	serveStreams(w, r, func(ctx context.Context, streams standardStreams) error { return c.exec(ctx, command, streams) })
}

// serveAttach sends the output that the program writes from now on.
func (n *Node) serveAttach(w http.ResponseWriter, r *http.Request) {
	if c := n.requestedContainer(w, r); c != nil {
		serveStreams(w, r, c.attach)
	}
}

// serveStreams opens the requested streams, calls run with them, and sends the result of run on
// the error stream. Terminals are not supported. If the client requests a terminal, stdout and
// stderr share a stream.
func serveStreams(w http.ResponseWriter, r *http.Request, run func(context.Context, standardStreams) error) {
	requested, merged := requestedStreams(r)
	if _, err := httpstream.Handshake(r, w, []string{remotecommandconsts.StreamProtocolV4Name}); err != nil {
		return
	}
	conn, opened := upgradeConnection(w, r)
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	streams, err := awaitStreams(opened, conn, requested)
	if err != nil {
		return
	}
	ctx, cancel := connectionContext(r.Context(), conn)
	defer cancel()
	var commandStreams standardStreams
	if stdin, ok := streams[corev1.StreamTypeStdin]; ok {
		commandStreams.Stdin = stdin
	}
	if stdout, ok := streams[corev1.StreamTypeStdout]; ok {
		commandStreams.Stdout = stdout
		if merged {
			commandStreams.Stderr = stdout
		}
	}
	if stderr, ok := streams[corev1.StreamTypeStderr]; ok {
		commandStreams.Stderr = stderr
	}
	status, _ := json.Marshal(exitStatus(run(ctx, commandStreams)))
	_, _ = streams[corev1.StreamTypeError].Write(status)
}

// requestedStreams returns the stream types that a request asks for. merged reports whether
// stdout and stderr share one stream.
func requestedStreams(r *http.Request) (requested map[string]bool, merged bool) {
	q := r.URL.Query()
	tty := q.Get("tty") == "1"
	requested = map[string]bool{corev1.StreamTypeError: true}
	for parameter, name := range map[string]string{"input": corev1.StreamTypeStdin, "output": corev1.StreamTypeStdout,
		"error": corev1.StreamTypeStderr} {
		if q.Get(parameter) == "1" && (name != corev1.StreamTypeStderr || !tty) {
			requested[name] = true
		}
	}
	if tty {
		requested[corev1.StreamTypeResize] = true
	}
	return requested, !requested[corev1.StreamTypeStderr]
}

// upgradeConnection upgrades a request to a connection with streams. If the upgrade fails,
// upgradeConnection writes the response and returns a nil connection.
func upgradeConnection(w http.ResponseWriter, r *http.Request) (httpstream.Connection, <-chan httpstream.Stream) {
	opened := make(chan httpstream.Stream, 1)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replied <-chan struct{}) error {
		go func() {
			<-replied
			select {
			case opened <- stream:
			case <-r.Context().Done():
			}
		}()
		return nil
	})
	if conn != nil {
		conn.SetIdleTimeout(idleTimeout)
	}
	return conn, opened
}

var errStreamsNotOpened = errors.New("the client did not open the requested streams")

func awaitStreams(opened <-chan httpstream.Stream, conn httpstream.Connection,
	requested map[string]bool) (map[string]httpstream.Stream, error) {
	limit := time.NewTimer(streamsTimeout)
	defer limit.Stop()
	streams := map[string]httpstream.Stream{}
	for len(streams) < len(requested) {
		select {
		case stream := <-opened:
			if name := stream.Headers().Get(corev1.StreamType); requested[name] {
				streams[name] = stream
			}
		case <-conn.CloseChan():
			return nil, errStreamsNotOpened
		case <-limit.C:
			return nil, errStreamsNotOpened
		}
	}
	return streams, nil
}

// connectionContext returns a context that is cancelled when the connection is closed.
func connectionContext(parent context.Context, conn httpstream.Connection) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-conn.CloseChan():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// exitStatus returns the Status object that reports the end of a command to the client.
func exitStatus(err error) *metav1.Status {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return &metav1.Status{Status: metav1.StatusSuccess}
	case errors.As(err, &exit):
		code := strconv.Itoa(int(exitCodeOf(err)))
		return &metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommandconsts.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommandconsts.ExitCodeCauseType, Message: code}}},
			Message: "command terminated with non-zero exit code " + code,
		}
	default:
		return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error(),
			Code: http.StatusInternalServerError}
	}
}

// servePortForward connects pairs of data and error streams with ports of the Pod.
func (n *Node) servePortForward(w http.ResponseWriter, r *http.Request) {
	p := n.requestedPod(w, r)
	if p == nil {
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{portForwardProtocol}); err != nil {
		return
	}
	conn, opened := upgradeConnection(w, r)
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := connectionContext(r.Context(), conn)
	defer cancel()
	errorStreams := map[string]httpstream.Stream{}
	for {
		var stream httpstream.Stream
		select {
		case <-ctx.Done():
			return
		case stream = <-opened:
		}
		id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			errorStreams[id] = stream
			continue
		}
		errorStream := errorStreams[id]
		delete(errorStreams, id)
		if errorStream == nil {
			_ = stream.Reset()
			continue
		}
		go func() {
			defer conn.RemoveStreams(stream, errorStream)
			if err := forwardPort(ctx, stream, net.JoinHostPort(p.address.String(), stream.Headers().Get(corev1.PortHeader))); err != nil {
				_, _ = io.WriteString(errorStream, err.Error())
			}
			_, _ = errorStream.Close(), stream.Close()
		}()
	}
}

// forwardPort copies data in both directions until the program or the client closes the
// connection.
func forwardPort(ctx context.Context, stream io.ReadWriter, address string) error {
	port, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("connecting to the program: %w", err)
	}
	if err := ensureListening(port); err != nil {
		return fmt.Errorf("connecting to the program: %w", err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting to the program: %w", err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	go func() {
		_, _ = io.Copy(conn, stream)
		if half, ok := conn.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	_, _ = io.Copy(stream, conn)
	return nil
}
