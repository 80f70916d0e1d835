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

// RestartingHost runs hosts one after another in the same process. A host ends when the storage of
// the control plane is replaced, for example by the restore of a backup. The next host starts with
// empty caches, and remembers only which storage was replaced.
type RestartingHost struct {
	newHost func(ctx context.Context) (*Host, error)
	host    *Host
	cancel  context.CancelFunc
	// retryPeriod is the delay between two attempts to create a host while the API server does
	// not serve all kinds.
	retryPeriod time.Duration
}

// NewRestartingHost creates the first host. newHost creates a host with its components, and receives a
// context that ends when this host ends.
func NewRestartingHost(ctx context.Context, newHost func(ctx context.Context) (*Host, error)) (*RestartingHost, error) {
	r := &RestartingHost{newHost: newHost, retryPeriod: awaitRetryPeriod}
	return r, r.createHost(ctx)
}

func (r *RestartingHost) createHost(ctx context.Context) (err error) {
	ctx, r.cancel = context.WithCancel(ctx)
	if r.host, err = r.newHost(ctx); err != nil {
		r.cancel()
	}
	return err
}

// recreateHost creates the next host. It retries until awaitTimeout, because an API server whose
// storage was replaced has just restarted and may not serve all kinds yet.
func (r *RestartingHost) recreateHost(ctx context.Context) error {
	for start := time.Now(); ; {
		err := r.createHost(ctx)
		if err == nil || time.Since(start) >= awaitTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.retryPeriod):
		}
	}
}

// Ready waits until the shared caches of the first host are synced.
func (r *RestartingHost) Ready(ctx context.Context) error { return r.host.Ready(ctx) }

// Run runs the hosts until ctx ends or a host fails for another reason than a replaced storage.
func (r *RestartingHost) Run(ctx context.Context) error {
	for {
		err := r.host.Run(ctx)
		r.cancel()
		if !errors.Is(err, epoch.ErrStorageReplaced) || ctx.Err() != nil {
			return err
		}
		if err := r.recreateHost(ctx); ctx.Err() != nil {
			return nil //nolint:nilerr // a program that is stopped while it waits ends without an error
		} else if err != nil {
			return fmt.Errorf("restarting after the storage of the control plane was replaced: %w", err)
		}
	}
}

// addEpochWatch makes the manager end when the storage of the control plane is replaced. If the
// process serves only one cluster, the watch does not write the epoch, because the process is not
// allowed to.
func addEpochWatch(mgr manager.Manager, o HostOptions) (*epoch.Watcher, error) {
	epochMetrics, err := epoch.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	options := epoch.Options{Reader: mgr.GetAPIReader(), Record: o.EpochMemory, Metrics: epochMetrics}
	if o.OnlyCluster == "" {
		options.Writer = mgr.GetClient()
	}
	watch := epoch.New(options)
	if err := mgr.Add(watch); err != nil {
		return nil, fmt.Errorf("adding the watch of the epoch: %w", err)
	}
	return watch, nil
}
