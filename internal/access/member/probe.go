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

// probeTimeout is how long a health endpoint may take to answer.
const probeTimeout = 10 * time.Second

// Health is what a probe of a member's API server saw.
type Health struct {
	// Reachable tells that the server answered.
	Reachable bool
	// Healthy tells that it said so of itself.
	Healthy bool
	// Refused tells that it does not take our credentials.
	Refused bool
	// Cause says why it is not reachable or not healthy.
	Cause string
	// Identity is which cluster it is, if the server is healthy otherwise.
	Identity domain.Identity
}

// Probe asks the member's API server for its health: /readyz, or /healthz of a
// server too old to have it. Any answer tells that it is reachable; only 200 that
// it is healthy.
func (m *Member) Probe(ctx context.Context) Health {
	health := m.probe(ctx)
	switch {
	case ctx.Err() != nil:
		// Who has given up asking has learned nothing.
	case health.Healthy:
		m.liveness.answers()
	default:
		if !health.Reachable {
			// Connections over which no answer comes may be dead on this side only. What
			// waits for one goes on over another, as soon as there is one.
			m.connections.CloseAll()
		}
		m.liveness.fails()
	}
	return health
}

func (m *Member) probe(ctx context.Context) Health {
	ctx, cancel := context.WithTimeout(ctx, m.probeLimit)
	defer cancel()
	client := m.discovery
	status, err := ask(ctx, client.RESTClient(), "/readyz")
	if status == http.StatusNotFound {
		status, err = ask(ctx, client.RESTClient(), "/healthz")
	}
	switch status {
	case http.StatusOK:
		return m.identified(ctx)
	case 0:
		return Health{Cause: causeOf(err)}
	default:
		return Health{
			Reachable: true, Refused: status == http.StatusUnauthorized || status == http.StatusForbidden,
			Cause: fmt.Sprintf("its health endpoint answered %d %s", status, http.StatusText(status)),
		}
	}
}

// identified is the health of a member whose server is well. One that is not known to
// be the cluster of its Cluster is not healthy: nothing is sent to it.
func (m *Member) identified(ctx context.Context) Health {
	health := Health{Reachable: true, Identity: m.identify(ctx)}
	switch {
	case health.Identity.Seen != "":
		health.Cause = domain.Mismatch(m.Name, m.config.Host, m.identity.expected, health.Identity.Seen)
	case health.Identity.Unknown != "":
		health.Cause = health.Identity.Unknown
	default:
		health.Healthy = true
	}
	return health
}

func ask(ctx context.Context, client rest.Interface, path string) (status int, err error) {
	// A server that asks to come again later is not healthy now.
	result := client.Get().AbsPath(path).MaxRetries(0).Do(withoutProof(ctx))
	result.StatusCode(&status)
	return status, result.Error()
}

// Version is the version of the member's Kubernetes.
func (m *Member) Version() (*version.Info, error) {
	info, err := m.discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking member %q for its version: %w", m.Name, err)
	}
	info.GitVersion = conditions.Shorten(conditions.Printable(info.GitVersion), maxVersion)
	return info, nil
}

// maxVersion is how long a version may be, in bytes.
const maxVersion = 128
