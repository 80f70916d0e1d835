package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
)

// serve serves the cluster until ctx ends. An agent that cannot renew its Lease
// stops working, for another one may have taken it, and begins anew in the same
// process: a program that ended each time the control plane is away would be kept
// from starting for minutes by then. One whose Cluster is gone waits for it.
func (a *agent) serve(ctx context.Context, registered *clusterv1alpha1.Cluster) error {
	lock, err := newLock(a.karmada.forever, a.host.Election)
	if err != nil {
		return err
	}
	for id := registered.Spec.ID; ; {
		lock.leases.belongTo(registered)
		began := time.Now()
		err := a.life(ctx, id, lock)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to end
		case errors.Is(err, errDismissed):
			if registered, err = a.awaitReturn(ctx, id); err != nil || registered == nil {
				return err
			}
			continue
		case isForeign(err) || !a.host.Election.Enabled || !lock.held.Load() || time.Since(began) < a.host.Election.RenewDeadline:
			return err
		}
		klog.FromContext(ctx).Info("Beginning anew", "reason", fmt.Sprint(err))
	}
}

// life runs the controllers once, as long as the agent leads and has its Cluster.
func (a *agent) life(ctx context.Context, id string, lock *lock) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	lock.held.Store(false)
	own := &presence{agent: a, id: id, doubts: make(chan struct{}, 1)}
	options := a.host
	options.Lock, options.LocalMember, options.Denied, options.Waits = lock, a.only(id), own.doubt, true
	host, err := programs.NewHost(ctx, a.karmada.waiting, options)
	if err != nil {
		return err
	}
	if err := host.AddComponents(programs.AgentComponent()); err != nil {
		return err
	}
	own.cache = host.Manager.GetCache()
	if err := host.Manager.Add(own); err != nil {
		return fmt.Errorf("adding the watch of the own Cluster: %w", err)
	}
	if err := host.Run(ctx); err != nil {
		return err
	}
	return errEnded
}

var errEnded = errors.New("the controllers ended by themselves")

// lock is the Lease of the election. Its owner is the same in all lives of the
// process, which therefore need not wait until what an earlier one held is over.
type lock struct {
	resourcelock.Interface
	leases ownedLeases
	// retry is how long a leader waits for one answer.
	retry time.Duration
	// held says that this life has led.
	held atomic.Bool
}

// newLock makes the Lease. The configuration should wait for the control plane: a
// replica that stands by has nothing better to do.
func newLock(karmada *rest.Config, election flags.Election) (*lock, error) {
	if !election.Enabled {
		return &lock{}, nil
	}
	lease, err := programs.NewLease(karmada, election)
	if err != nil {
		return nil, err
	}
	made := &lock{retry: election.RetryPeriod, Interface: lease}
	made.leases.LeasesGetter, lease.Client = lease.Client, &made.leases
	return made, nil
}

// Get implements resourcelock.Interface. Who leads must know in time whether it
// still does; who does not waits for an answer.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := l.within(ctx)
	defer cancel()
	return l.Interface.Get(ctx)
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	ctx, cancel := l.within(ctx)
	defer cancel()
	return l.note(l.Interface.Create(ctx, record))
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	ctx, cancel := l.within(ctx)
	defer cancel()
	return l.note(l.Interface.Update(ctx, record))
}

func (l *lock) note(err error) error {
	if err == nil {
		l.held.Store(true)
	}
	return err
}

func (l *lock) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.held.Load() {
		return context.WithTimeout(ctx, l.retry)
	}
	return context.WithCancel(ctx)
}
