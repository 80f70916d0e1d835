package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/standalone"
)

const webhookHeaderTimeout = 10 * time.Second

// startWebhook serves the conversion of binding versions and returns its port. Admission runs
// inside the API server. Every user of the machine can reach this port, so it must not serve
// more than conversion.
func (c *ControlPlane) startWebhook(ctx context.Context) (port int, err error) {
	listener, err := standalone.Listen(standalone.Loopback, c.options.Ports[Webhook])
	if err != nil {
		return 0, err
	}
	certFile, keyFile := c.ServingCert()
	certificate, err := pki.LoadServingCertificate(certFile, keyFile)
	if err != nil {
		return 0, fmt.Errorf("loading the certificate of %s: %w", Webhook, err)
	}
	server := &http.Server{
		Handler:           admission.ConversionHandler(),
		ReadHeaderTimeout: webhookHeaderTimeout,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: certificate.GetCertificate},
	}
	c.Run(ctx, Webhook, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return standalone.ListenerPort(listener), nil
}
