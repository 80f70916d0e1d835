package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/standalone"
)

const (
	webhookHeaderTimeout = 10 * time.Second
	certificatePoll      = 10 * time.Second
)

// startWebhook serves the conversion of binding versions and returns its port. Admission runs inside
// the API server and needs no webhook here.
func (c *ControlPlane) startWebhook(ctx context.Context) (port int, err error) {
	listener, err := standalone.Listen(standalone.Loopback, c.options.Ports[Webhook])
	if err != nil {
		return 0, err
	}
	certFile, keyFile := c.ServingCert()
	certificate, err := certwatcher.New(certFile, keyFile)
	if err != nil {
		return 0, fmt.Errorf("loading certificate of %s: %w", Webhook, err)
	}
	server := &http.Server{
		Handler:           admission.Webhook(c.reviewer()),
		ReadHeaderTimeout: webhookHeaderTimeout,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: certificate.GetCertificate},
	}
	c.Run(ctx, Webhook+" certificate", func(ctx context.Context) error { return follow(ctx, certificate) })
	c.Run(ctx, Webhook, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return standalone.Port(listener), nil
}

// follow takes a new certificate when the files change, until ctx ends. Where the
// system has no watch left to give, it looks every few seconds.
func follow(ctx context.Context, certificate *certwatcher.CertWatcher) error {
	err := certificate.Start(ctx)
	if ctx.Err() != nil {
		return nil
	}
	klog.FromContext(ctx).Error(err, "Watching the certificate, looking at it from time to time instead", "server", Webhook)
	ticker := time.NewTicker(certificatePoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := certificate.ReadCertificate(); err != nil {
				klog.FromContext(ctx).Error(err, "Reading the certificate", "server", Webhook)
			}
		}
	}
}
