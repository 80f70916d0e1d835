package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/programs"
)

// serve serves the cluster until ctx ends. An agent that cannot renew its Lease
// stops working, for another one may have taken it, and begins anew in the same
// process: a program that ended each time the control plane is away would be kept
// from starting for minutes by then. So does one whose control plane is restored from a
// backup, and one that cannot even start for a reason that passes. One whose Cluster is
// gone waits for it.
func (a *agent) serve(ctx context.Context, registered *clusterv1alpha1.Cluster) error {
	lock, err := a.newLock()
	if err != nil {
		return err
	}
	id, pause := registered.Spec.ID, time.Duration(0)
	for {
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
		}
		worked := time.Since(began) >= a.host.Election.RenewDeadline
		if isFinal(err, worked) {
			return err
		}
		pause = pauseAfter(worked && lock.held.Load(), pause)
		klog.FromContext(ctx).Info("Beginning anew", "reason", fmt.Sprint(err), "after", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-a.karmada.get().replaced:
		case <-time.After(pause):
		}
	}
}

// beginPause and beginLimit bound the pauses between lives that end early.
const (
	beginPause = time.Second
	beginLimit = time.Minute
)

// pauseAfter is how long to wait after a life and the pause before it. One that has
// led for a while is followed at once.
func pauseAfter(led bool, before time.Duration) time.Duration {
	if led {
		return 0
	}
	return min(max(2*before, beginPause), beginLimit)
}

// isFinal tells that no further life can go better than one that ended with an error.
// What worked for a while may do so again, but not for a name that is another
// cluster's.
func isFinal(err error, worked bool) bool {
	return isForeign(err) || !worked && !passes(err) && !errors.Is(err, epoch.ErrAnother)
}

// passes tells that an error came from somebody who may answer otherwise the next
// time, and is not what this process makes of its flags.
func passes(err error) bool {
	var unanswered net.Error
	return errors.As(err, &unanswered) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || meta.IsNoMatchError(err) || discovery.IsGroupDiscoveryFailedError(err)
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

// newLock makes the Lease, with the owner of the one before. It waits for the control
// plane: a replica that stands by has nothing better to do.
func (a *agent) newLock() (*lock, error) {
	election := a.host.Election
	if !election.Enabled {
		return &lock{}, nil
	}
	var err error
	if a.lease == nil {
		a.lease, err = programs.NewLease(a.karmada.forever, election)
	} else {
		a.lease, err = a.lease.Through(a.karmada.forever)
	}
	if err != nil {
		return nil, err
	}
	made := &lock{retry: election.RetryPeriod, Interface: a.lease}
	made.leases.LeasesGetter, a.lease.Client = a.lease.Client, &made.leases
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
