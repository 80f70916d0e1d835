package integration

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
)

// tcpProxy forwards connections, for example between the control plane and a member. While it
// is paused, it accepts connections and forwards no data, like a member that hangs. When it
// resumes, it forwards the data that it received meanwhile.
type tcpProxy struct {
	listener   net.Listener
	goroutines sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	// target is the address of the server behind the proxy.
	target string
	// paused means that the proxy holds data back. refusing means that it closes new connections at
	// once.
	paused, refusing, stopped bool
	connections               map[*proxyConnection]struct{}
}

// proxyConnection is one connection through a tcpProxy.
type proxyConnection struct {
	clientSide, serverSide net.Conn
	// lost is true when no more data is forwarded and neither side is notified.
	lost bool
}

func (p *proxyConnection) close() {
	_ = p.clientSide.Close()
	_ = p.serverSide.Close()
}

// newTCPProxy starts a proxy to the server with the given URL.
func newTCPProxy(t testing.TB, server string) *tcpProxy {
	t.Helper()
	return newTCPProxyAt(t, fmt.Sprintf("127.0.0.1:%d", freePort(t)), server)
}

// newTCPProxyAt does the same as newTCPProxy on a given listen address, such as the address of a
// stopped proxy.
func newTCPProxyAt(t testing.TB, at, server string) *tcpProxy {
	t.Helper()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	g := &tcpProxy{listener: listener, connections: map[*proxyConnection]struct{}{}}
	g.changed = sync.NewCond(&g.mu)
	g.redirect(t, server)
	g.goroutines.Go(g.acceptConnections)
	t.Cleanup(g.stop)
	return g
}

// URL returns the URL under which clients reach the server through the proxy.
func (g *tcpProxy) URL() string { return "https://" + g.listener.Addr().String() }

// redirect changes the target to another server and closes all connections.
func (g *tcpProxy) redirect(t testing.TB, server string) {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	g.update(func() { g.target = address.Host })
	g.closeConnections()
}

// setPaused pauses or resumes the proxy.
func (g *tcpProxy) setPaused(closed bool) { g.update(func() { g.paused = closed }) }

// setRefusing starts or stops to refuse connections. When it starts, it closes all connections.
func (g *tcpProxy) setRefusing(refusing bool) {
	g.update(func() { g.refusing = refusing })
	if refusing {
		g.closeConnections()
	}
}

// partition pauses the proxy and drops its connections without notice, like a network partition.
// The dropped connections forward nothing even after the proxy resumes.
func (g *tcpProxy) partition() {
	g.update(func() {
		g.paused = true
		for each := range g.connections {
			each.lost = true
		}
	})
}

func (g *tcpProxy) update(what func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	what()
	g.changed.Broadcast()
}

func (g *tcpProxy) closeConnections() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for each := range g.connections {
		each.close()
	}
}

func (g *tcpProxy) acceptConnections() {
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
		p := &proxyConnection{clientSide: outer, serverSide: inner}
		if !g.addConnection(p) {
			return
		}
		g.goroutines.Go(func() { g.copyData(p, inner, outer) })
		g.goroutines.Go(func() { g.copyData(p, outer, inner) })
	}
}

func (g *tcpProxy) addConnection(p *proxyConnection) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		p.close()
		return false
	}
	g.connections[p] = struct{}{}
	return true
}

func (g *tcpProxy) copyData(through *proxyConnection, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && g.awaitOpen(through) {
			_, writeErr := to.Write(buffer[:n])
			if err == nil {
				err = writeErr
			}
		}
		if err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			through.close()
			delete(g.connections, through)
			return
		}
	}
}

// awaitOpen waits until the proxy is not paused, and reports whether the connection may forward
// data.
func (g *tcpProxy) awaitOpen(p *proxyConnection) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.paused && !g.stopped && !p.lost {
		g.changed.Wait()
	}
	return !g.stopped && !p.lost
}

func (g *tcpProxy) stop() {
	_ = g.listener.Close()
	g.update(func() { g.stopped = true })
	g.closeConnections()
	g.goroutines.Wait()
}
