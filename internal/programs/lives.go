package programs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/access/epoch"
)

// Lives are hosts that run one after the other in the same process. A host ends when
// the storage of the control plane was replaced, as by the restore of a backup. The next
// one has empty caches and remembers nothing but which storage was replaced.
type Lives struct {
	begin func(ctx context.Context) (*Host, error)
	host  *Host
	end   context.CancelFunc
	// pause is how long to wait for an API server that does not serve all kinds yet.
	pause time.Duration
}

// NewLives makes the first host. begin makes a host with its components; the context
// that it gets bounds the life of that host.
func NewLives(ctx context.Context, begin func(ctx context.Context) (*Host, error)) (*Lives, error) {
	l := &Lives{begin: begin, pause: awaitPause}
	return l, l.next(ctx)
}

func (l *Lives) next(ctx context.Context) (err error) {
	ctx, l.end = context.WithCancel(ctx)
	if l.host, err = l.begin(ctx); err != nil {
		l.end()
	}
	return err
}

// again makes the next host. An API server whose storage was replaced has just started and
// does not serve all kinds yet: it is waited for, a minute at most.
func (l *Lives) again(ctx context.Context) error {
	for began := time.Now(); ; {
		err := l.next(ctx)
		if err == nil || time.Since(began) >= awaitLimit {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(l.pause):
		}
	}
}

// Ready waits until the shared caches of the first host hold what is stored.
func (l *Lives) Ready(ctx context.Context) error { return l.host.Ready(ctx) }

// Run runs the hosts until ctx ends or one fails for another reason.
func (l *Lives) Run(ctx context.Context) error {
	for {
		err := l.host.Run(ctx)
		l.end()
		if !errors.Is(err, epoch.ErrAnother) || ctx.Err() != nil {
			return err
		}
		if err := l.again(ctx); ctx.Err() != nil {
			return nil //nolint:nilerr // a program that is told to end while it waits ends well
		} else if err != nil {
			return fmt.Errorf("beginning anew after the storage of the control plane was replaced: %w", err)
		}
	}
}

// addEpoch makes the manager end when the storage of the control plane is replaced. A
// process that serves one cluster may not write the epoch.
func addEpoch(mgr manager.Manager, o HostOptions) (*epoch.Watch, error) {
	measured, err := epoch.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	of := epoch.Options{Reader: mgr.GetAPIReader(), Memory: o.Storage, Metrics: measured}
	if o.Settings.Only == "" {
		of.Writer = mgr.GetClient()
	}
	watch := epoch.New(of)
	if err := mgr.Add(watch); err != nil {
		return nil, fmt.Errorf("adding the watch of the epoch: %w", err)
	}
	return watch, nil
}
