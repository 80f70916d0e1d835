package up

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/scheduling"
	"karmada.io/karmada/internal/standalone"
)

// serveEstimates serves estimates for the member until ctx ends. member is the client configuration for
// the member. An error does not end the member's process, because the scheduler then uses the member's
// resource summary.
func (m memberOptions) serveEstimates(ctx context.Context, member *rest.Config) error {
	delay := restartDelay
	for ctx.Err() == nil {
		if err := m.serveEstimatesOnce(ctx, member); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The estimator ended, restarting it", "member", m.Name, "delay", delay)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, maxRestartDelay)
	}
	return nil
}

func (m memberOptions) serveEstimatesOnce(ctx context.Context, member *rest.Config) error {
	o, err := m.estimatorOptions()
	if err != nil {
		return err
	}
	listener, err := standalone.Listen(standalone.Loopback, m.EstimatorPort)
	if err != nil {
		return err
	}
	return scheduling.ServeEstimator(ctx, member, o, listener, nil)
}

func (m memberOptions) estimatorOptions() (*scheduling.EstimatorOptions, error) {
	set := gates.New()
	if err := set.Set(m.FeatureGates); err != nil {
		return nil, fmt.Errorf("--feature-gates: %w", err)
	}
	certs := pki.Dir{Path: m.EstimatorsDir}
	o := scheduling.NewEstimatorOptions(set)
	o.Cluster = m.Name
	o.Certificates.CertFile, o.Certificates.KeyFile = certs.CertFile(estimatorServerCert(m.Name)), certs.KeyFile(estimatorServerCert(m.Name))
	o.Certificates.ClientCAFile = certs.CertFile(estimatorCA)
	return o, nil
}
