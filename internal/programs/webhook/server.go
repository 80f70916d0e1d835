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
	// drainTimeout is longer than an API server waits for most answers.
	drainTimeout = 10 * time.Second
)

// Server is a webhook that listens and is ready to run.
type Server struct {
	certificate *certwatcher.CertWatcher
	servers     []listening
}

// listening is an HTTP server with its listener.
type listening struct {
	http.Server
	listener net.Listener
}

// New loads the certificate and opens the listeners. A server that is never run
// holds on to them.
func New(ctx context.Context, o *Options, reviewer admission.Reviewer) (*Server, error) {
	ctrllog.SetLogger(klog.Background())
	certificate, err := certwatcher.New(o.certFile(), o.keyFile())
	if err != nil {
		return nil, fmt.Errorf("loading the serving certificate %s and its key %s, see --cert-dir: %w", o.certFile(), o.keyFile(), err)
	}
	told, err := newMetrics()
	if err != nil {
		return nil, err
	}
	s := &Server{certificate: certificate}
	if err := s.open(ctx, "--secure-port", net.JoinHostPort(o.BindAddress, strconv.Itoa(o.SecurePort)), answers(told.observe(admission.Webhook(reviewer)))); err != nil {
		return nil, err
	}
	s.servers[0].TLSConfig = &tls.Config{
		MinVersion:     tlsVersions()[o.MinTLSVersion],
		GetCertificate: certificate.GetCertificate,
	}
	if err := s.openStatus(ctx, o, told); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openStatus opens where the program tells of itself; equal addresses make one
// server.
func (s *Server) openStatus(ctx context.Context, o *Options, told *metrics) error {
	health, measured := o.Serving.Health, o.Serving.Metrics
	mux := http.NewServeMux()
	if isOn(health) {
		mux.HandleFunc("GET /healthz", ok)
		mux.HandleFunc("GET /readyz", ok)
		if health == measured {
			mux.Handle("GET /metrics", told.handler())
		}
		if err := s.open(ctx, "--health-probe-bind-address", health, mux); err != nil {
			return err
		}
	}
	if !isOn(measured) || measured == health {
		return nil
	}
	mux = http.NewServeMux()
	mux.Handle("GET /metrics", told.handler())
	return s.open(ctx, "--metrics-bind-address", measured, mux)
}

func (s *Server) open(ctx context.Context, flag, address string, handler http.Handler) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening on %s, see %s: %w", address, flag, err)
	}
	s.servers = append(s.servers, listening{listener: listener, Server: http.Server{
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

// Address is where questions are answered.
func (s *Server) Address() net.Addr { return s.servers[0].listener.Addr() }

// Run serves until ctx ends; questions that were asked before are still answered.
// When one server fails all end. A Server runs once.
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

func (l *listening) serve(ctx context.Context) error {
	drained := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(drained)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if l.Shutdown(limited) != nil {
			_ = l.Close()
		}
	})
	err := l.listen()
	if !release() {
		<-drained
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving on %s: %w", l.listener.Addr(), err)
}

func (l *listening) listen() error {
	if l.TLSConfig != nil {
		return l.ServeTLS(l.listener, "", "")
	}
	return l.Serve(l.listener)
}

// answers serves the questions, and tells beside them that they are answered.
func answers(questions http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", questions)
	mux.HandleFunc("GET /readyz/", ok)
	return mux
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }

func isOn(address string) bool { return address != "" && address != "0" }
