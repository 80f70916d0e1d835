package member

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
)

// probeTimeout is the maximum time to wait for a health endpoint.
const probeTimeout = 10 * time.Second

// Health is the result of a probe of a member's API server.
type Health struct {
	// Reachable is true if the server responded.
	Reachable bool
	// Healthy is true if the server reports that it is healthy.
	Healthy bool
	// CredentialsRejected is true if the server rejects the credentials.
	CredentialsRejected bool
	// Cause says why the server is not reachable or not healthy.
	Cause string
	// Identity is the result of the identity check. It is set only if the server reports that it is
	// healthy.
	Identity domain.IdentityCheck
}

// Probe reads the health of the member's API server from /readyz, or from /healthz if the server
// has no /readyz. The server is reachable if it sends any response, and healthy if it responds with
// status 200.
func (m *Member) Probe(ctx context.Context) Health {
	health := m.readHealth(ctx)
	switch {
	case ctx.Err() != nil:
		// The health is not changed, because a canceled probe does not show whether the member is
		// healthy.
	case health.Healthy:
		m.health.setHealthy()
	default:
		if !health.Reachable {
			// All connections are closed, because connections without a response may be broken.
			// Requests that wait then use new connections.
			m.connections.CloseAll()
		}
		m.health.setUnhealthy()
	}
	return health
}

func (m *Member) readHealth(ctx context.Context) Health {
	ctx, cancel := context.WithTimeout(ctx, m.probeTimeout)
	defer cancel()
	client := m.discovery
	status, err := requestStatus(ctx, client.RESTClient(), "/readyz")
	if status == http.StatusNotFound {
		status, err = requestStatus(ctx, client.RESTClient(), "/healthz")
	}
	switch status {
	case http.StatusOK:
		return m.healthWithIdentity(ctx)
	case 0:
		return Health{Cause: connectionCause(err)}
	default:
		return Health{
			Reachable: true, CredentialsRejected: status == http.StatusUnauthorized || status == http.StatusForbidden,
			Cause: fmt.Sprintf("its health endpoint responded with %d %s", status, http.StatusText(status)),
		}
	}
}

// healthWithIdentity checks the identity of a member whose server is healthy, and returns the
// health of the member. A member whose identity is not proven is unhealthy, because no request is
// sent to it.
func (m *Member) healthWithIdentity(ctx context.Context) Health {
	health := Health{Reachable: true, Identity: m.verifyIdentity(ctx)}
	switch {
	case health.Identity.OtherID != "":
		health.Cause = domain.MismatchMessage(m.Name, m.config.Host, m.verifier.expectedID, health.Identity.OtherID)
	case health.Identity.UnknownCause != "":
		health.Cause = health.Identity.UnknownCause
	default:
		health.Healthy = true
	}
	return health
}

func requestStatus(ctx context.Context, client rest.Interface, path string) (status int, err error) {
	// The request is not retried, because a server that asks to retry later is not healthy now.
	result := client.Get().AbsPath(path).MaxRetries(0).Do(withDialPurpose(ctx, withoutProof))
	result.StatusCode(&status)
	return status, result.Error()
}

// Version returns the Kubernetes version of the member.
func (m *Member) Version() (*version.Info, error) {
	info, err := m.discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reading the version of member %q: %w", m.Name, err)
	}
	info.GitVersion = conditions.Truncate(conditions.ToPrintable(info.GitVersion), maxVersionBytes)
	return info, nil
}

// maxVersionBytes is the maximum length of a version, in bytes.
const maxVersionBytes = 128
