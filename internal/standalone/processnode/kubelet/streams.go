package kubelet

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

	"karmada.io/karmada/internal/standalone/processnode/process"
)

const (
	// streamsTimeout is how long a client may take to open the streams that it asked
	// for.
	streamsTimeout = 30 * time.Second
	// idleTimeout ends a connection on which nothing happens.
	idleTimeout       = 4 * time.Hour
	portForwardV1Name = "portforward.k8s.io"
)

// serveExec runs a command and tells its exit code.
func (n Node) serveExec(w http.ResponseWriter, r *http.Request) {
	c := n.containerOf(w, r)
	if c == nil {
		return
	}
	words := r.URL.Query()["command"]
	if len(words) == 0 {
		http.Error(w, "no command is given", http.StatusBadRequest)
		return
	}
	serveStreams(w, r, func(ctx context.Context, streams Streams) error { return c.Exec(ctx, words, streams) })
}

// serveAttach shows what the program writes from now on.
func (n Node) serveAttach(w http.ResponseWriter, r *http.Request) {
	if c := n.containerOf(w, r); c != nil {
		serveStreams(w, r, c.Attach)
	}
}

// serveStreams gives run the streams that the client asked for, and tells how it
// ended on the stream for errors. There are no terminals: with one, both outputs come
// on the same stream.
func serveStreams(w http.ResponseWriter, r *http.Request, run func(context.Context, Streams) error) {
	wanted, merged := streamsOf(r)
	if _, err := httpstream.Handshake(r, w, []string{remotecommandconsts.StreamProtocolV4Name}); err != nil {
		return
	}
	conn, opened := upgrade(w, r)
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	streams, err := collect(opened, conn, wanted)
	if err != nil {
		return
	}
	ctx, cancel := ended(r.Context(), conn)
	defer cancel()
	var use Streams
	if stdin, ok := streams[corev1.StreamTypeStdin]; ok {
		use.Stdin = stdin
	}
	if stdout, ok := streams[corev1.StreamTypeStdout]; ok {
		use.Stdout = stdout
		if merged {
			use.Stderr = stdout
		}
	}
	if stderr, ok := streams[corev1.StreamTypeStderr]; ok {
		use.Stderr = stderr
	}
	verdict, _ := json.Marshal(verdictOf(run(ctx, use)))
	_, _ = streams[corev1.StreamTypeError].Write(verdict)
}

// streamsOf are the streams that a request asks for by its type; merged tells that
// there is only one for both outputs.
func streamsOf(r *http.Request) (wanted map[string]bool, merged bool) {
	q := r.URL.Query()
	tty := q.Get("tty") == "1"
	wanted = map[string]bool{corev1.StreamTypeError: true}
	for parameter, name := range map[string]string{"input": corev1.StreamTypeStdin, "output": corev1.StreamTypeStdout, "error": corev1.StreamTypeStderr} {
		if q.Get(parameter) == "1" && (name != corev1.StreamTypeStderr || !tty) {
			wanted[name] = true
		}
	}
	if tty {
		wanted[corev1.StreamTypeResize] = true
	}
	return wanted, !wanted[corev1.StreamTypeStderr]
}

// upgrade turns a request into a connection of streams; nil if it could not, which
// the client was told.
func upgrade(w http.ResponseWriter, r *http.Request) (httpstream.Connection, <-chan httpstream.Stream) {
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

var errStreams = errors.New("the client did not open its streams")

func collect(opened <-chan httpstream.Stream, conn httpstream.Connection, wanted map[string]bool) (map[string]httpstream.Stream, error) {
	limit := time.NewTimer(streamsTimeout)
	defer limit.Stop()
	streams := map[string]httpstream.Stream{}
	for len(streams) < len(wanted) {
		select {
		case stream := <-opened:
			if name := stream.Headers().Get(corev1.StreamType); wanted[name] {
				streams[name] = stream
			}
		case <-conn.CloseChan():
			return nil, errStreams
		case <-limit.C:
			return nil, errStreams
		}
	}
	return streams, nil
}

// ended is a context that ends with the connection.
func ended(parent context.Context, conn httpstream.Connection) (context.Context, context.CancelFunc) {
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

// verdictOf is how the end of a command is told.
func verdictOf(err error) *metav1.Status {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return &metav1.Status{Status: metav1.StatusSuccess}
	case errors.As(err, &exit):
		code := strconv.Itoa(int(process.CodeOf(err)))
		return &metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommandconsts.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommandconsts.ExitCodeCauseType, Message: code}}},
			Message: "command terminated with non-zero exit code " + code,
		}
	default:
		return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error(), Code: http.StatusInternalServerError}
	}
}

// servePortForward connects pairs of streams with ports of the Pod's address.
func (n Node) servePortForward(w http.ResponseWriter, r *http.Request) {
	p := n.hosted(w, r)
	if p == nil {
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{portForwardV1Name}); err != nil {
		return
	}
	conn, opened := upgrade(w, r)
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := ended(r.Context(), conn)
	defer cancel()
	failures := map[string]httpstream.Stream{}
	for {
		var stream httpstream.Stream
		select {
		case <-ctx.Done():
			return
		case stream = <-opened:
		}
		id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			failures[id] = stream
			continue
		}
		told := failures[id]
		delete(failures, id)
		if told == nil {
			_ = stream.Reset()
			continue
		}
		go func() {
			defer conn.RemoveStreams(stream, told)
			if err := forward(ctx, stream, net.JoinHostPort(p.Address(), stream.Headers().Get(corev1.PortHeader))); err != nil {
				_, _ = io.WriteString(told, err.Error())
			}
			_, _ = told.Close(), stream.Close()
		}()
	}
}

// forward copies both ways until the program hangs up, or the client does.
func forward(ctx context.Context, stream io.ReadWriter, address string) error {
	port, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("connecting with the program: %w", err)
	}
	if err := CheckListening(port); err != nil {
		return fmt.Errorf("connecting with the program: %w", err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting with the program: %w", err)
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
