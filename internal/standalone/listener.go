package standalone

import (
	"net"
	"sync"
)

// listener remembers the connections that it accepted. A server that stops leaves
// to the end of the process what its clients do not close, watches above all; a
// cluster that stops earlier has to hang up itself, or its clients wait for news
// from a server that is no more.
type listener struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}
}

func newListener(from net.Listener) *listener {
	return &listener{Listener: from, open: map[*connection]struct{}{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // servers look at this error
	}
	conn := &connection{Conn: accepted, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[conn] = struct{}{}
	return conn, nil
}

// hangUp closes the listener and everything that it accepted.
func (l *listener) hangUp() {
	_ = l.Close()
	l.mu.Lock()
	open := l.open
	l.open = map[*connection]struct{}{}
	l.mu.Unlock()
	for conn := range open {
		_ = conn.Conn.Close()
	}
}

// connection leaves the memory of its listener when it is closed.
type connection struct {
	net.Conn
	listener *listener
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // servers look at this error
}
