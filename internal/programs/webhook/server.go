package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"karmada.io/karmada/internal/servers/admission"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// drainTimeout is how long requests in progress may take when the server stops. It is longer
	// than the timeout of most webhook requests of an API server.
	drainTimeout = 10 * time.Second
)

// Server is a webhook server with open listeners.
type Server struct {
	certificate *certwatcher.CertWatcher
	servers     []listeningServer
}

// listeningServer is an HTTP server with its listener.
type listeningServer struct {
	http.Server
	listener net.Listener
}

// NewServer loads the certificate and opens the listeners. The listeners stay open until Run ends.
func NewServer(ctx context.Context, o *Options, reviewer admission.Reviewer) (*Server, error) {
	ctrllog.SetLogger(klog.Background())
	certificate, err := certwatcher.New(o.certFile(), o.keyFile())
	if err != nil {
		return nil, fmt.Errorf("loading the serving certificate %s and its key %s, see --cert-dir: %w", o.certFile(), o.keyFile(), err)
	}
	serverMetrics, err := newMetrics()
	if err != nil {
		return nil, err
	}
	s := &Server{certificate: certificate}
	if err := s.listen(ctx, "--secure-port", net.JoinHostPort(o.BindAddress, strconv.Itoa(o.SecurePort)), withReadiness(serverMetrics.observe(admission.NewWebhookHandler(reviewer)))); err != nil {
		return nil, err
	}
	s.servers[0].TLSConfig = &tls.Config{
		MinVersion:     tlsVersions()[o.MinTLSVersion],
		GetCertificate: certificate.GetCertificate,
	}
	if err := s.listenStatus(ctx, o, serverMetrics); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// listenStatus opens the listeners for health and metrics. If both addresses are equal, one
// listener is used for both.
func (s *Server) listenStatus(ctx context.Context, o *Options, serverMetrics *metrics) error {
	healthAddress, metricsAddress := o.Serving.Health, o.Serving.Metrics
	mux := http.NewServeMux()
	if isEnabled(healthAddress) {
		mux.HandleFunc("GET /healthz", writeOK)
		mux.HandleFunc("GET /readyz", writeOK)
		if healthAddress == metricsAddress {
			mux.Handle("GET /metrics", serverMetrics.handler())
		}
		if err := s.listen(ctx, "--health-probe-bind-address", healthAddress, mux); err != nil {
			return err
		}
	}
	if !isEnabled(metricsAddress) || metricsAddress == healthAddress {
		return nil
	}
	mux = http.NewServeMux()
	mux.Handle("GET /metrics", serverMetrics.handler())
	return s.listen(ctx, "--metrics-bind-address", metricsAddress, mux)
}

func (s *Server) listen(ctx context.Context, flag, address string, handler http.Handler) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening on %s, see %s: %w", address, flag, err)
	}
	s.servers = append(s.servers, listeningServer{listener: listener, Server: http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog: klog.NewStandardLogger("INFO"),
	}})
	return nil
}

func (s *Server) close() {
	for i := range s.servers {
		_ = s.servers[i].listener.Close()
	}
}

// Address returns the address on which webhook requests are served.
func (s *Server) Address() net.Addr { return s.servers[0].listener.Addr() }

// Run serves until ctx ends. Requests in progress are completed. If one server fails, all servers
// end. A Server can run only once.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := s.certificate.Start(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watching the serving certificate: %w", err)
		}
		return nil
	})
	for i := range s.servers {
		group.Go(func() error { return s.servers[i].serve(ctx) })
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
			_ = l.Close()
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

// withReadiness adds the path /readyz/ to the handler of the webhook.
func withReadiness(webhook http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", webhook)
	mux.HandleFunc("GET /readyz/", writeOK)
	return mux
}

func writeOK(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }

func isEnabled(address string) bool { return address != "" && address != "0" }
