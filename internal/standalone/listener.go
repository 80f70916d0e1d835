package standalone

import (
	"net"
	"sync"
)

// listener tracks the connections that it accepted. A server that stops does not close the
// connections that its clients keep open, for example watches. When the cluster stops and the
// process continues, the cluster must close these connections, because clients would otherwise
// wait for events of a stopped server.
type listener struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}

	// disconnected is closed when the cluster has closed all connections. closed is closed when the
	// server has closed its listener.
	disconnected, closed       chan struct{}
	disconnectOnce, closedOnce sync.Once
}

func newListener(from net.Listener) *listener {
	return &listener{
		Listener: from, open: map[*connection]struct{}{},
		disconnected: make(chan struct{}), closed: make(chan struct{}),
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		select {
		case <-l.disconnected:
			// A server panics if its listener fails before the server is told to stop, so Accept returns the
			// error only after the server has closed the listener.
			<-l.closed
		default:
		}
		return nil, err // servers look at this error
	}
	conn := &connection{Conn: accepted, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[conn] = struct{}{}
	return conn, nil
}

// Close implements net.Listener for the server.
func (l *listener) Close() error {
	l.closedOnce.Do(func() { close(l.closed) })
	return l.Listener.Close() // servers look at this error
}

// disconnect stops listening and closes all accepted connections. The server may still
// be running.
func (l *listener) disconnect() {
	l.disconnectOnce.Do(func() { close(l.disconnected) })
	_ = l.Listener.Close()
	l.mu.Lock()
	open := l.open
	l.open = map[*connection]struct{}{}
	l.mu.Unlock()
	for conn := range open {
		_ = conn.Conn.Close()
	}
}

// connection is an accepted connection that is removed from its listener when it is closed.
type connection struct {
	net.Conn
	listener *listener
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close() // servers look at this error
}
