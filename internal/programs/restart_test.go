package programs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karmada.io/karmada/internal/access/epoch"
)

func TestHostRestartsAfterTheStorageWasReplaced(t *testing.T) {
	failed := errors.New("a port is in use")
	replaced := fmt.Errorf("checking: %w", epoch.ErrStorageReplaced)
	tests := map[string]struct {
		// ends are the errors that the hosts return, one after another.
		ends  []error
		want  error
		lives int
	}{
		"a replaced storage starts another host": {[]error{replaced, replaced, failed}, failed, 3},
		"any other error ends the process":       {[]error{failed}, failed, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before context.Context
			lives := 0
			l, err := NewRestartingHost(t.Context(), func(ctx context.Context) (*Host, error) {
				if before != nil && before.Err() == nil {
					t.Error("the previous host still runs")
				}
				before = ctx
				host, end := NewOfflineHost(t), test.ends[lives]
				lives++
				return host, host.Manager.Add(manager.RunnableFunc(func(context.Context) error { return end }))
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Run(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if lives != test.lives {
				t.Errorf("%d hosts, want %d", lives, test.lives)
			}
		})
	}
}

func TestRestartedHostWaitsForTheAPIServer(t *testing.T) {
	failed, tries := errors.New("a port is in use"), 0
	ends := []error{epoch.ErrStorageReplaced, failed}
	l, err := NewRestartingHost(t.Context(), func(context.Context) (*Host, error) {
		if tries++; tries == 2 {
			return nil, errors.New("no kind is served")
		}
		host, end := NewOfflineHost(t), ends[0]
		ends = ends[1:]
		return host, host.Manager.Add(manager.RunnableFunc(func(context.Context) error { return end }))
	})
	if err != nil {
		t.Fatal(err)
	}
	l.retryPeriod = time.Millisecond
	if err := l.Run(t.Context()); !errors.Is(err, failed) || tries != 3 {
		t.Errorf("error %v after %d tries, want %v after 3", err, tries, failed)
	}
}
