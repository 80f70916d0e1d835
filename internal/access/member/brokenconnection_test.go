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

// cuttableProxy forwards connections to a server. After a cut it drops all data and reports no
// error to either side, like a router that lost its state.
type cuttableProxy struct {
	net.Listener
	server string

	mu          sync.Mutex
	connections []*proxiedConnection
}

type proxiedConnection struct {
	clientSide, serverSide net.Conn
	mu                     sync.Mutex
	isCut                  bool
}

func newCuttableProxy(t *testing.T, server string) *cuttableProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &cuttableProxy{Listener: listener, server: server}
	t.Cleanup(func() {
		_ = listener.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, l := range n.connections {
			_, _ = l.clientSide.Close(), l.serverSide.Close()
		}
	})
	go n.serve()
	return n
}

func (c *cuttableProxy) serve() {
	for {
		near, err := c.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.server)
		if err != nil {
			_ = near.Close()
			continue
		}
		l := &proxiedConnection{clientSide: near, serverSide: far}
		c.mu.Lock()
		c.connections = append(c.connections, l)
		c.mu.Unlock()
		go l.forward(near, far)
		go l.forward(far, near)
	}
}

func (p *proxiedConnection) forward(from, to net.Conn) {
	buffer := make([]byte, 4096)
	for {
		read, err := from.Read(buffer)
		p.mu.Lock()
		cut := p.isCut
		p.mu.Unlock()
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

// cutConnections drops all later data of the open connections.
func (c *cuttableProxy) cutConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.connections {
		l.mu.Lock()
		l.isCut = true
		l.mu.Unlock()
	}
}

func TestBrokenConnectionsAreReplaced(t *testing.T) {
	server := newAPIServer(t, "token")
	between := newCuttableProxy(t, strings.TrimPrefix(server.URL, "https://"))
	w := newMemberFixture(t, server, "token")
	w.cluster.Spec.APIEndpoint = "https://" + between.Addr().String()
	if err := w.karmada.Update(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	target := w.mustGet(t)
	target.probeTimeout = 300 * time.Millisecond
	if health := target.Probe(t.Context()); !health.Healthy {
		t.Fatalf("before the cut: %+v", health)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	between.cutConnections()
	if health := target.Probe(ctx); health.Reachable {
		t.Fatalf("over a connection that is cut: %+v", health)
	}
	if health := target.Probe(ctx); !health.Healthy {
		t.Errorf("over a new connection: %+v", health)
	}
}
