package clusterclienttest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// StartServer starts an in-memory API server that ends with the test, and returns a client configuration for
// it. The connections are pipes, so that a test can use the server in a synctest bubble: the bubble's clock
// stands still while the server handles a request.
func StartServer(t *testing.T, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	listener := &pipeListener{connections: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler} // no client is slow
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
	return &rest.Config{Host: "http://server", Dial: listener.dial}
}

// pipeListener accepts one connection for each call of dial.
type pipeListener struct {
	connections chan net.Conn
	closeOnce   sync.Once
	closed      chan struct{}
}

func (p *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.connections <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case connection := <-p.connections:
		return connection, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipeListener) Close() error {
	p.closeOnce.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (*pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "server", Net: "pipe"} }
