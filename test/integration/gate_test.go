package integration

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// gate stands between the control plane and a member. Closed, it accepts
// connections and lets nothing through, as a member does that hangs; opened
// again, it lets through what has come meanwhile.
type gate struct {
	listener net.Listener
	target   string
	copies   sync.WaitGroup

	mu     sync.Mutex
	moved  *sync.Cond
	closed bool
	ended  bool
	open   map[net.Conn]struct{}
}

// newGate makes an open gate to the server with that URL.
func newGate(t testing.TB, server string) *gate {
	t.Helper()
	return newGateOn(t, "127.0.0.1:0", server)
}

// newGateOn is newGate at an address, such as that of a gate which ended.
func newGateOn(t testing.TB, at, server string) *gate {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, target: address.Host, open: map[net.Conn]struct{}{}}
	g.moved = sync.NewCond(&g.mu)
	g.copies.Go(g.accept)
	t.Cleanup(g.end)
	return g
}

// URL is where the member seems to be.
func (g *gate) URL() string { return "https://" + g.listener.Addr().String() }

// set closes or opens the gate.
func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	g.moved.Broadcast()
}

func (g *gate) accept() {
	for {
		outer, err := g.listener.Accept()
		if err != nil {
			return
		}
		inner, err := net.Dial("tcp", g.target)
		if err != nil {
			_ = outer.Close()
			continue
		}
		if !g.keep(outer, inner) {
			return
		}
		g.copies.Go(func() { g.copy(inner, outer) })
		g.copies.Go(func() { g.copy(outer, inner) })
	}
}

func (g *gate) keep(connections ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, connection := range connections {
		if g.ended {
			_ = connection.Close()
			continue
		}
		g.open[connection] = struct{}{}
	}
	return !g.ended
}

func (g *gate) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && g.pass() {
			_, writeErr := to.Write(buffer[:n])
			if err == nil {
				err = writeErr
			}
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			g.mu.Lock()
			delete(g.open, to)
			delete(g.open, from)
			g.mu.Unlock()
			return
		}
	}
}

// pass waits until the gate is open, and tells whether it still stands.
func (g *gate) pass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.closed && !g.ended {
		g.moved.Wait()
	}
	return !g.ended
}

func (g *gate) end() {
	_ = g.listener.Close()
	g.mu.Lock()
	g.ended = true
	for connection := range g.open {
		_ = connection.Close()
	}
	g.moved.Broadcast()
	g.mu.Unlock()
	g.copies.Wait()
}
