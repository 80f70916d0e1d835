package memberproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hopHeaders are the hop-by-hop headers.
var hopHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// isUpgrade reports whether a request asks to switch protocols.
func isUpgrade(req *http.Request) bool {
	return req.Header.Get("Upgrade") != "" && httpguts.HeaderValuesContainsToken(req.Header["Connection"], "upgrade")
}

// upgrade forwards a request to switch protocols, and then copies bytes in both directions.
func (f *forwarder) upgrade(w http.ResponseWriter, req *http.Request, target *url.URL) {
	if !hasNoBody(w, req, f.client.timeouts.errorBody) {
		// Reject the body, because its bytes could not be distinguished from the bytes of the
		// stream. Close the connection, so that the error response does not wait for the rest of
		// the body.
		w.Header().Set("Connection", "close")
		f.responder.Error(apierrors.NewBadRequest("a request to switch protocols must not have a body"))
		return
	}
	ctx, end := context.WithCancelCause(req.Context())
	defer end(nil)
	// The idle timeout applies until the member responds.
	dog := newWatchdog(f.client.timeouts.idle, func() { end(errIdle) })
	defer dog.stop()
	out := upgradeRequest(req.WithContext(ctx), target)
	resp, err := f.client.send(f.client.member.transport.upgrades, out, f.client.requestInfo(out))
	if err != nil {
		f.responder.Error(err)
		return
	}
	defer resp.Body.Close()
	dog.stop()
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		if err := f.stream(ctx, w, resp); err != nil {
			f.responder.Error(err)
		}
	case resp.StatusCode >= http.StatusBadRequest:
		// The body of the error response has its own timeout.
		dog := newWatchdog(f.client.timeouts.errorBody, func() { end(errIdle) })
		defer dog.stop()
		defer limitClientWrites(ctx, w)()
		resp.Body = completeBody{resp.Body, ctx}
		copyErrorResponse(w, resp)
	default:
		f.responder.Error(f.invalidUpgrade(resp.Status))
	}
}

// hasNoBody reports whether a request has no body. A proxy may send an empty body of unknown
// length. The end of this body must arrive within the limit.
func hasNoBody(w http.ResponseWriter, req *http.Request, limit time.Duration) bool {
	if req.ContentLength >= 0 {
		return req.ContentLength == 0
	}
	connection := http.NewResponseController(w)
	if connection.SetReadDeadline(time.Now().Add(limit)) != nil {
		return false
	}
	n, err := req.Body.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF) && connection.SetReadDeadline(time.Time{}) == nil
}

func (f *forwarder) invalidUpgrade(reason string) error {
	return newStatusError(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable,
		"invalid upgrade response of cluster %q: %s", f.client.cluster.Name, reason)
}

// upgradeRequest returns the request to the member. The request contains no identity.
func upgradeRequest(req *http.Request, target *url.URL) *http.Request {
	out := req.Clone(req.Context())
	out.URL, out.Host, out.RequestURI = target, target.Host, ""
	protocol := out.Header.Get("Upgrade")
	for line := range strings.SplitSeq(strings.Join(out.Header["Connection"], ","), ",") {
		out.Header.Del(strings.TrimSpace(line))
	}
	for _, name := range hopHeaders {
		out.Header.Del(name)
	}
	out.Header.Set("Connection", "Upgrade")
	out.Header.Set("Upgrade", protocol)
	out.Body, out.ContentLength, out.TransferEncoding = nil, 0, nil
	return out
}

// copyErrorResponse copies an error response of a member. It does not reuse the connection,
// because the connection may have a write deadline.
func copyErrorResponse(w http.ResponseWriter, resp *http.Response) {
	for _, name := range hopHeaders {
		resp.Header.Del(name)
	}
	maps.Copy(w.Header(), resp.Header)
	w.Header().Set("Connection", "close")
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// stream sends the 101 response to the client and then copies bytes in both directions until
// both have ended. It returns an error only while the client can still receive it.
func (f *forwarder) stream(ctx context.Context, w http.ResponseWriter, resp *http.Response) error {
	member, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return f.invalidUpgrade("the connection is not writable")
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("hijacking the connection of the client: %w", err)
	}
	defer client.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = member.Close()
	})
	defer stop()
	// Write only the head of the response, because all later bytes belong to the stream.
	head := *resp
	head.Body = nil
	if err := errors.Join(head.Write(buffered), buffered.Flush()); err == nil {
		// Read from the buffer of the server only the data that the buffer contains already, and
		// read the rest from the connection. If the buffer read the rest, the end of the data of
		// the client would end the request.
		early := io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered()))
		copyStream(client, io.MultiReader(early, client), member, f.client.timeouts.halfClosed)
	}
	return nil
}

// copyStream copies data until both directions have ended. When one direction ends, its end is
// forwarded, so that the other side can finish. From then on, the idle timeout applies.
func copyStream(client net.Conn, early io.Reader, member io.ReadWriteCloser, linger time.Duration) {
	closeBoth := func() {
		_ = client.Close()
		_ = member.Close()
	}
	defer closeBoth()
	var halfClosedDog atomic.Pointer[watchdog]
	endForwarded := make(chan bool, 2)
	go func() { endForwarded <- copyDirection(member, progressReader{early, &halfClosedDog}) }()
	go func() { endForwarded <- copyDirection(client, progressReader{member, &halfClosedDog}) }()
	if !<-endForwarded {
		closeBoth()
	}
	halfClosedDog.Store(newWatchdog(linger, closeBoth))
	<-endForwarded
	halfClosedDog.Load().stop()
}

// copyDirection copies the data of one direction and forwards the end of this direction. It
// reports whether the end was forwarded. If not, the other direction cannot continue.
func copyDirection(to io.Writer, from io.Reader) (endForwarded bool) {
	if _, err := io.Copy(to, from); err != nil {
		return false
	}
	half, ok := to.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}

// progressReader resets a watchdog with each read, as soon as the watchdog is set.
type progressReader struct {
	io.Reader
	watchdog *atomic.Pointer[watchdog]
}

func (p progressReader) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.watchdog.Load().reset()
	return n, err
}
