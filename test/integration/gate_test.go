package integration

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
)

// gate stands between two sides of a connection, such as the control plane and a
// member. Closed, it accepts connections and lets nothing through, as a member does
// that hangs; opened again, it lets through what has come meanwhile.
type gate struct {
	listener net.Listener
	copies   sync.WaitGroup

	mu    sync.Mutex
	moved *sync.Cond
	// target is the address of the server behind the gate.
	target string
	// closed holds what comes, refusing hangs up at once.
	closed, refusing, ended bool
	open                    map[*passage]struct{}
}

// passage is one connection through a gate.
type passage struct {
	outer, inner net.Conn
	// lost tells that nothing comes through any more, and neither side is told.
	lost bool
}

func (p *passage) hangUp() {
	_ = p.outer.Close()
	_ = p.inner.Close()
}

// newGate makes an open gate to the server with that URL.
func newGate(t testing.TB, server string) *gate {
	t.Helper()
	return newGateOn(t, fmt.Sprintf("127.0.0.1:%d", freePort(t)), server)
}

// newGateOn is newGate at an address, such as that of a gate which ended.
func newGateOn(t testing.TB, at, server string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, open: map[*passage]struct{}{}}
	g.moved = sync.NewCond(&g.mu)
	g.lead(t, server)
	g.copies.Go(g.accept)
	t.Cleanup(g.end)
	return g
}

// URL is where the server seems to be.
func (g *gate) URL() string { return "https://" + g.listener.Addr().String() }

// lead makes the gate one to another server, and hangs up.
func (g *gate) lead(t testing.TB, server string) {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	g.change(func() { g.target = address.Host })
	g.hangUp()
}

// set closes or opens the gate.
func (g *gate) set(closed bool) { g.change(func() { g.closed = closed }) }

// refuse hangs up and goes on doing so, or stops to.
func (g *gate) refuse(refusing bool) {
	g.change(func() { g.refusing = refusing })
	if refusing {
		g.hangUp()
	}
}

// lose closes the gate and forgets its connections, as a network does that is cut
// in two: nothing comes through them even when it is whole again.
func (g *gate) lose() {
	g.change(func() {
		g.closed = true
		for each := range g.open {
			each.lost = true
		}
	})
}

func (g *gate) change(what func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	what()
	g.moved.Broadcast()
}

func (g *gate) hangUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for each := range g.open {
		each.hangUp()
	}
}

func (g *gate) accept() {
	for {
		outer, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		target, refusing := g.target, g.refusing
		g.mu.Unlock()
		if refusing {
			_ = outer.Close()
			continue
		}
		inner, err := net.Dial("tcp", target)
		if err != nil {
			_ = outer.Close()
			continue
		}
		p := &passage{outer: outer, inner: inner}
		if !g.keep(p) {
			return
		}
		g.copies.Go(func() { g.copy(p, inner, outer) })
		g.copies.Go(func() { g.copy(p, outer, inner) })
	}
}

func (g *gate) keep(p *passage) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		p.hangUp()
		return false
	}
	g.open[p] = struct{}{}
	return true
}

func (g *gate) copy(through *passage, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && g.pass(through) {
			_, writeErr := to.Write(buffer[:n])
			if err == nil {
				err = writeErr
			}
		}
		if err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			through.hangUp()
			delete(g.open, through)
			return
		}
	}
}

// pass waits until the gate is open, and tells whether something may come through.
func (g *gate) pass(p *passage) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.closed && !g.ended && !p.lost {
		g.moved.Wait()
	}
	return !g.ended && !p.lost
}

func (g *gate) end() {
	_ = g.listener.Close()
	g.change(func() { g.ended = true })
	g.hangUp()
	g.copies.Wait()
}
