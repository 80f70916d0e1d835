package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/servers/admission"
)

// Server is a webhook server with open listeners.
type Server struct {
	certificate *certwatcher.CertWatcher
	servers     command.ServerGroup
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
	tlsConfig := &tls.Config{MinVersion: tlsVersions()[o.MinTLSVersion], GetCertificate: certificate.GetCertificate}
	handler := withReadiness(serverMetrics.observe(admission.NewWebhookHandler(reviewer)))
	if err := s.servers.Listen(ctx, "--secure-port", net.JoinHostPort(o.BindAddress, strconv.Itoa(o.SecurePort)), handler,
		tlsConfig); err != nil {
		return nil, err
	}
	return s, s.servers.ListenStatus(ctx, o.Serving, command.MetricsHandler(serverMetrics.registry))
}

// Address returns the address on which webhook requests are served.
func (s *Server) Address() net.Addr { return s.servers.Address() }

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
	group.Go(func() error { return s.servers.Run(ctx) })
	return group.Wait()
}

// withReadiness adds the path /readyz/ to the handler of the webhook.
func withReadiness(webhook http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", webhook)
	mux.HandleFunc("GET /readyz/", command.WriteOK)
	return mux
}
