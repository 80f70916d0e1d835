package member

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// network carries connections to a server. One that is cut carries nothing any more
// and tells neither side, as when a router loses its state.
type network struct {
	net.Listener
	server string

	mu    sync.Mutex
	lines []*line
}

type line struct {
	near, far net.Conn
	mu        sync.Mutex
	cut       bool
}

func newNetwork(t *testing.T, server string) *network {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{Listener: listener, server: server}
	t.Cleanup(func() {
		_ = listener.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, l := range n.lines {
			_, _ = l.near.Close(), l.far.Close()
		}
	})
	go n.serve()
	return n
}

func (n *network) serve() {
	for {
		near, err := n.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", n.server)
		if err != nil {
			_ = near.Close()
			continue
		}
		l := &line{near: near, far: far}
		n.mu.Lock()
		n.lines = append(n.lines, l)
		n.mu.Unlock()
		go l.carry(near, far)
		go l.carry(far, near)
	}
}

func (l *line) carry(from, to net.Conn) {
	buffer := make([]byte, 4096)
	for {
		read, err := from.Read(buffer)
		l.mu.Lock()
		cut := l.cut
		l.mu.Unlock()
		switch {
		case cut:
			_, _ = io.Copy(io.Discard, from)
			return
		case read > 0:
			_, _ = to.Write(buffer[:read])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// cut loses what is sent over the connections that there are.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines {
		l.mu.Lock()
		l.cut = true
		l.mu.Unlock()
	}
}

func TestAMemberWhoseConnectionsAreCutIsReachedOverNewOnes(t *testing.T) {
	server := newAPIServer(t, "token")
	between := newNetwork(t, strings.TrimPrefix(server.URL, "https://"))
	w := newWorld(t, server, "token")
	w.cluster.Spec.APIEndpoint = "https://" + between.Addr().String()
	if err := w.karmada.Update(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	target := w.get(t)
	target.probeLimit = 300 * time.Millisecond
	if health := target.Probe(t.Context()); !health.Healthy {
		t.Fatalf("before: %+v", health)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	between.cut()
	if health := target.Probe(ctx); health.Reachable {
		t.Fatalf("over a connection that is cut: %+v", health)
	}
	if health := target.Probe(ctx); !health.Healthy {
		t.Errorf("afterwards: %+v", health)
	}
}
