package standalone

import (
	"net"
	"sync"
)

// listener tracks the connections that it accepted. A server that stops leaves the
// connections that its clients do not close, watches above all, to the end of the
// process. A cluster that stops earlier closes them, or its clients would wait for
// events of a stopped server.
type listener struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}

	// disconnected ends when the cluster has closed all connections, closed when the
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
			// A server whose listener fails before it was told to stop panics. One that
			// stops late hears of the failure when it closes the listener itself.
			<-l.closed
		default:
		}
		return nil, err //nolint:wrapcheck // servers look at this error
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
	return l.Listener.Close() //nolint:wrapcheck // servers look at this error
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
