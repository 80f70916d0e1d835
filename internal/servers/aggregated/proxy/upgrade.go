package proxy

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

// hopHeaders are between two neighbours only.
var hopHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// isUpgrade tells a request that asks to switch protocols.
func isUpgrade(req *http.Request) bool {
	return req.Header.Get("Upgrade") != "" && httpguts.HeaderValuesContainsToken(req.Header["Connection"], "upgrade")
}

// upgrade asks the member to switch protocols, and then copies bytes both ways.
func (p *passage) upgrade(w http.ResponseWriter, req *http.Request, target *url.URL) {
	if !bodiless(w, req, p.way.limits.refusal) {
		// Its bytes and those of the stream could not be told apart. The answer does
		// not wait for the rest of it.
		w.Header().Set("Connection", "close")
		p.responder.Error(apierrors.NewBadRequest("a request to switch protocols must not have a body"))
		return
	}
	ctx, end := context.WithCancelCause(req.Context())
	defer end(nil)
	// Until there is an answer, a member has no reason to be silent.
	dog := newWatchdog(p.way.limits.silence, func() { end(errSilent) })
	defer dog.stop()
	out := upgradeRequest(req.WithContext(ctx), target)
	resp, err := p.way.send(p.way.member.transport.upgrades, out, p.way.info(out))
	if err != nil {
		p.responder.Error(err)
		return
	}
	defer resp.Body.Close()
	dog.stop()
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		if err := p.stream(ctx, w, resp); err != nil {
			p.responder.Error(err)
		}
	case resp.StatusCode >= http.StatusBadRequest:
		// It says why within a time of its own, however late it came.
		dog := newWatchdog(p.way.limits.refusal, func() { end(errSilent) })
		defer dog.stop()
		defer cutOff(ctx, w)()
		resp.Body = whole{resp.Body, ctx}
		passBack(w, resp)
	default:
		p.responder.Error(p.invalidUpgrade(resp.Status))
	}
}

// bodiless tells a request without a body. Proxies in front may call none a body of
// unknown length, whose end must then come within the limit.
func bodiless(w http.ResponseWriter, req *http.Request, limit time.Duration) bool {
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

func (p *passage) invalidUpgrade(what string) error {
	return failure(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable,
		"invalid upgrade response of cluster %q: %s", p.way.cluster.Name, what)
}

// upgradeRequest is the request as it goes to the member, still without identity.
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
	trace(out.Header, req)
	out.Header.Set("Connection", "Upgrade")
	out.Header.Set("Upgrade", protocol)
	out.Body, out.ContentLength, out.TransferEncoding = nil, 0, nil
	return out
}

// passBack copies the refusal of a member. The connection, whose writes may have an
// end by then, is not used again.
func passBack(w http.ResponseWriter, resp *http.Response) {
	for _, name := range hopHeaders {
		resp.Header.Del(name)
	}
	maps.Copy(w.Header(), resp.Header)
	w.Header().Set("Connection", "close")
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// stream passes the member's consent on and then bytes both ways, until both
// directions have ended. It returns an error while the client can still be told.
func (p *passage) stream(ctx context.Context, w http.ResponseWriter, resp *http.Response) error {
	member, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return p.invalidUpgrade("it leaves nothing to write to")
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("taking over the connection of the client: %w", err)
	}
	defer client.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = member.Close()
	})
	defer stop()
	// Nothing but the head of the answer: what follows are bytes of the stream.
	head := *resp
	head.Body = nil
	if err := errors.Join(head.Write(buffered), buffered.Flush()); err == nil {
		// Read through the server's buffer, the end of the client's bytes would end
		// the request.
		early := io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered()))
		copyBoth(client, io.MultiReader(early, client), member, p.way.limits.linger)
	}
	return nil
}

// copyBoth copies until both directions have ended. The end of one is passed on, so
// that the other side can finish what it has to say; it may not be silent for long
// then.
func copyBoth(client net.Conn, early io.Reader, member io.ReadWriteCloser, linger time.Duration) {
	closeBoth := func() {
		_ = client.Close()
		_ = member.Close()
	}
	defer closeBoth()
	var last atomic.Pointer[watchdog]
	toldEnd := make(chan bool, 2)
	go func() { toldEnd <- copyHalf(member, progress{early, &last}) }()
	go func() { toldEnd <- copyHalf(client, progress{member, &last}) }()
	if !<-toldEnd {
		closeBoth()
	}
	last.Store(newWatchdog(linger, closeBoth))
	<-toldEnd
	last.Load().stop()
}

// copyHalf copies one direction and passes its end on. It reports whether it could:
// otherwise the other direction has no reason to go on.
func copyHalf(to io.Writer, from io.Reader) (toldEnd bool) {
	if _, err := io.Copy(to, from); err != nil {
		return false
	}
	half, ok := to.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}

// progress shows a watchdog, once there is one, what is read.
type progress struct {
	io.Reader
	dog *atomic.Pointer[watchdog]
}

func (p progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.dog.Load().alive()
	return n, err
}
