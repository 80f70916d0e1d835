package services

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// maxConnections limits a listener's open connections. Further connections wait in the kernel's queue.
	maxConnections = 1024
	// dialTimeout limits the connection to a Pod.
	dialTimeout = 10 * time.Second
	// acceptRetryDelay is the delay after an error of Accept, for example because the process has
	// too many open files.
	acceptRetryDelay = 100 * time.Millisecond
)

// forwarder accepts TCP connections on one address and forwards each of them to one of its targets in turn.
type forwarder struct {
	address netip.AddrPort
	// reported is the error that was reported last.
	reported string
	slots    chan struct{}
	// lifetime ends all connections.
	lifetime   context.Context //nolint:containedctx // connections outlive the calls that change the targets
	end        context.CancelFunc
	goroutines sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	targets  []netip.AddrPort
	next     int
}

func newForwarder(address netip.AddrPort) *forwarder {
	f := &forwarder{address: address, slots: make(chan struct{}, maxConnections)}
	f.lifetime, f.end = context.WithCancel(context.Background())
	return f
}

// setTargets changes the targets for new connections. Without targets, the forwarder does not listen, so
// that the kernel rejects connections at once. Open connections continue until one end closes them.
func (f *forwarder) setTargets(targets []netip.AddrPort) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.targets = slices.Clone(targets)
	if len(targets) == 0 {
		f.closeListener()
		return nil
	}
	if f.listener != nil {
		return nil
	}
	opened, err := (&net.ListenConfig{}).Listen(f.lifetime, "tcp4", f.address.String())
	if err != nil {
		return err // the caller names the Service
	}
	f.listener = opened
	f.goroutines.Go(func() { f.accept(opened) })
	return nil
}

// closeListener stops accepting connections. The caller holds the lock.
func (f *forwarder) closeListener() {
	if f.listener != nil {
		_ = f.listener.Close()
		f.listener = nil
	}
}

// close ends the listener and all connections.
func (f *forwarder) close() {
	f.mu.Lock()
	f.targets = nil
	f.closeListener()
	f.mu.Unlock()
	f.end()
	f.goroutines.Wait()
}

// isOpen reports whether the forwarder still uses a listener.
func (f *forwarder) isOpen(opened net.Listener) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listener == opened
}

// nextTarget returns the target of the next connection.
func (f *forwarder) nextTarget() (netip.AddrPort, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.targets) == 0 {
		return netip.AddrPort{}, false
	}
	f.next = (f.next + 1) % len(f.targets)
	return f.targets[f.next], true
}

// accept forwards the connections of a listener until the listener is closed.
func (f *forwarder) accept(opened net.Listener) {
	connections := acceptor{listener: opened, slots: f.slots, goroutines: &f.goroutines, isOpen: func() bool { return f.isOpen(opened) }}
	connections.run(f.lifetime, f.forward)
}

// acceptor accepts connections, as many at the same time as there are slots.
type acceptor struct {
	listener   net.Listener
	slots      chan struct{}
	goroutines *sync.WaitGroup
	// isOpen is false after the owner has closed the listener.
	isOpen func() bool
}

// run serves each connection in a goroutine of its own, until the listener is closed or ctx ends.
// serve closes the connection.
func (a acceptor) run(ctx context.Context, serve func(client net.Conn)) {
	for {
		select {
		case <-ctx.Done():
			return
		case a.slots <- struct{}{}:
		}
		client, err := a.listener.Accept()
		if err == nil {
			a.goroutines.Go(func() {
				defer func() { <-a.slots }()
				serve(client)
			})
			continue
		}
		<-a.slots
		if !a.isOpen() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(acceptRetryDelay):
		}
	}
}

// forward connects a client to a target. If no target accepts the connection, forward resets the client's
// connection instead of ending the stream.
func (f *forwarder) forward(client net.Conn) {
	defer func() { _ = client.Close() }()
	pod := f.dial()
	if pod == nil {
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return
	}
	defer func() { _ = pod.Close() }()
	join(f.lifetime, client, pod)
}

// join copies both directions of a connection until both have ended, or until ctx ends.
func join(ctx context.Context, client, server net.Conn) {
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	var upload sync.WaitGroup
	upload.Go(func() { transfer(server, client) })
	transfer(client, server)
	upload.Wait()
}

// dial connects to one of the targets, and attempts each target at most once.
func (f *forwarder) dial() net.Conn {
	f.mu.Lock()
	attempts := len(f.targets)
	f.mu.Unlock()
	dialer := net.Dialer{Timeout: dialTimeout}
	for range attempts {
		target, ok := f.nextTarget()
		if !ok {
			return nil
		}
		if pod, err := dialer.DialContext(f.lifetime, "tcp4", target.String()); err == nil {
			return pod
		}
	}
	return nil
}

// transfer copies one direction of a connection, and then passes on the end of the stream. After an
// error it closes both ends, because the other direction may wait for a peer that is gone.
func transfer(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok {
		_, _ = to.Close(), from.Close()
		return
	}
	_ = half.CloseWrite()
}
