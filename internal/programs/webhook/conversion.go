package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/servers/admission"
)

// newConversionServer returns a server for conversion only. It is used by a control plane that
// runs admission inside its API server. The server must serve nothing else, because every user of
// the machine can reach its port.
func newConversionServer(_ context.Context, control programs.ControlPlane) (*programs.RunningServer, error) {
	certificate, err := pki.LoadServingCertificate(control.CertFile, control.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("loading the serving certificate: %w", err)
	}
	server := &http.Server{
		Handler:           admission.ConversionHandler(),
		ReadHeaderTimeout: command.HeaderTimeout,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: certificate.GetCertificate},
	}
	return &programs.RunningServer{Run: func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.ServeTLS(control.Listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err // the control plane adds the name of the server
		}
		return nil
	}}, nil
}
