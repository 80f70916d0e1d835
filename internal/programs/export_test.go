package programs

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// NewOfflineHost returns a host that sends no request to the control plane.
func NewOfflineHost(t *testing.T) *Host {
	t.Helper()
	host, err := newOfflineHost(t.Context(), HostOptions{Gates: gates.New()})
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// AwaitPrerequisites waits for the prerequisites of a component. Its timeout and retry period
// differ from those of a program.
func AwaitPrerequisites(ctx context.Context, karmada *rest.Config, election flags.Election, component Component, limit, pause time.Duration) error {
	f, err := newPrerequisites(karmada, election, []Component{component})
	if err != nil {
		return err
	}
	return f.await(ctx, limit, pause)
}
