package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/programs/flags"
)

const (
	// HeaderTimeout limits the time in which a client sends the header of a request.
	HeaderTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// drainTimeout is how long requests in progress may take when the servers stop. It is longer
	// than the timeout of most webhook requests of an API server.
	drainTimeout = 10 * time.Second
)

// ServerGroup is a group of servers with open listeners. The zero value has no servers.
//
// All listeners are open before the first request is served, so that an address in use is reported
// at the start. If one server fails, all servers end. Requests in progress are completed.
type ServerGroup struct {
	servers []*listeningServer
}

// listeningServer is an HTTP server with its listener.
type listeningServer struct {
	http.Server
	listener net.Listener
}

// Listen adds a server. tlsConfig may be nil: then the server does not use TLS. flag is the flag
// with the address. If Listen fails, it closes the listeners of the group.
func (g *ServerGroup) Listen(ctx context.Context, flag, address string, handler http.Handler, tlsConfig *tls.Config) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		g.Close()
		return fmt.Errorf("listening on %s, see %s: %w", address, flag, err)
	}
	g.servers = append(g.servers, &listeningServer{listener: listener, Server: http.Server{
		Handler: handler, TLSConfig: tlsConfig, ReadHeaderTimeout: HeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: klog.NewStandardLogger("INFO"),
	}})
	return nil
}

// ListenStatus adds the servers for health and metrics. If both addresses are equal, one server
// serves both.
func (g *ServerGroup) ListenStatus(ctx context.Context, serving flags.Serving, metrics http.Handler) error {
	mux := http.NewServeMux()
	if isEnabled(serving.Health) {
		mux.HandleFunc("GET /healthz", WriteOK)
		mux.HandleFunc("GET /readyz", WriteOK)
		if serving.Health == serving.Metrics {
			mux.Handle("GET /metrics", metrics)
		}
		if err := g.Listen(ctx, "--health-probe-bind-address", serving.Health, mux, nil); err != nil {
			return err
		}
	}
	if !isEnabled(serving.Metrics) || serving.Metrics == serving.Health {
		return nil
	}
	mux = http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	return g.Listen(ctx, "--metrics-bind-address", serving.Metrics, mux, nil)
}

// Address returns the address of the server that was added first.
func (g *ServerGroup) Address() net.Addr { return g.servers[0].listener.Addr() }

// Close closes all listeners. It is needed only if Run is not called.
func (g *ServerGroup) Close() {
	for _, server := range g.servers {
		_ = server.listener.Close()
	}
}

// Run serves until ctx ends. A ServerGroup can run only once.
func (g *ServerGroup) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, server := range g.servers {
		group.Go(func() error { return server.serve(ctx) })
	}
	return group.Wait()
}

func (l *listeningServer) serve(ctx context.Context) error {
	drained := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(drained)
		shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if l.Shutdown(shutdownCtx) != nil {
			_ = l.Server.Close()
		}
	})
	err := l.serveListener()
	if !release() {
		<-drained
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving on %s: %w", l.listener.Addr(), err)
}

func (l *listeningServer) serveListener() error {
	if l.TLSConfig != nil {
		return l.ServeTLS(l.listener, "", "")
	}
	return l.Serve(l.listener)
}

// WriteOK responds that the program is healthy.
func WriteOK(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }

func isEnabled(address string) bool { return address != "" && address != "0" }
