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

// serveCluster runs the controllers until ctx ends. It restarts the controllers in the same
// process if they end early: after the agent lost its Lease, after the control plane was restored
// from a backup, and after a transient error at the start. If the process exited instead, the
// kubelet would delay its restart for minutes. If the Cluster is deleted, serveCluster waits until
// the Cluster exists again.
func (a *agent) serveCluster(ctx context.Context, registered *clusterv1alpha1.Cluster) error {
	lock, err := a.newElectionLock()
	if err != nil {
		return err
	}
	id, delay := registered.Spec.ID, time.Duration(0)
	for {
		lock.leases.setOwner(registered)
		started := time.Now()
		err := a.runControllers(ctx, id, lock)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // a stopped agent ends without an error
		case errors.Is(err, errClusterDeleted):
			if registered, err = a.awaitCluster(ctx, id); err != nil || registered == nil {
				return err
			}
			continue
		}
		worked := time.Since(started) >= a.options.Election.RenewDeadline
		if isFinal(err, worked) {
			return err
		}
		delay = nextRestartDelay(worked && lock.hasLed.Load(), delay)
		klog.FromContext(ctx).Info("Restarting the controllers", "reason", fmt.Sprint(err), "after", delay)
		select {
		case <-ctx.Done():
			return nil
		case <-a.karmada.currentIdentity().replaced:
		case <-time.After(delay):
		}
	}
}

// restartBackoffBase and restartBackoffMax limit the exponential backoff between restarts of the
// controllers.
const (
	restartBackoffBase = time.Second
	restartBackoffMax  = time.Minute
)

// nextRestartDelay returns the delay before the next restart. The delay is 0 if the agent has been
// the leader after the last start.
func nextRestartDelay(led bool, before time.Duration) time.Duration {
	if led {
		return 0
	}
	return min(max(2*before, restartBackoffBase), restartBackoffMax)
}

// isFinal reports whether the agent must exit, because a restart of the controllers cannot resolve
// the error. If the controllers worked before the error, the agent does not exit, unless the
// Cluster belongs to another cluster.
func isFinal(err error, worked bool) bool {
	return isRegisteredByOther(err) || !worked && !isTransient(err) && !errors.Is(err, epoch.ErrStorageReplaced)
}

// isTransient reports whether an error came from a server and may disappear. Other errors are
// caused by the flags of this process.
func isTransient(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || meta.IsNoMatchError(err) || discovery.IsGroupDiscoveryFailedError(err)
}

// runControllers runs the controllers as long as the agent is the leader and its Cluster exists.
func (a *agent) runControllers(ctx context.Context, id string, lock *electionLock) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lock.hasLed.Store(false)
	watch := &clusterWatch{agent: a, id: id, checkRequests: make(chan struct{}, 1)}
	options := a.options
	options.Lock, options.LocalMember, options.OnWatchForbidden, options.RetriesRequests = lock, a.memberConfig(id), watch.requestCheck, true
	host, err := programs.NewHost(ctx, a.karmada.waitingConfig, options)
	if err != nil {
		return err
	}
	if err := host.Add(a.component); err != nil {
		return err
	}
	watch.cache = host.Manager.GetCache()
	if err := host.Manager.Add(watch); err != nil {
		return fmt.Errorf("adding the watch of the Cluster: %w", err)
	}
	if err := host.Run(ctx); err != nil {
		return err
	}
	return errControllersEnded
}

var errControllersEnded = errors.New("the controllers ended unexpectedly")

// electionLock is the lock of the leader election. The identity of the lock holder does not change
// when the controllers restart, so a restart does not wait until the Lease expires.
type electionLock struct {
	resourcelock.Interface
	leases ownedLeases
	// requestTimeout limits each request of a leader.
	requestTimeout time.Duration
	// hasLed is true if the lock was acquired since the last start of the controllers.
	hasLed atomic.Bool
}

// newElectionLock returns a lock with the identity of the previous lock. Requests of the lock wait
// for the control plane without a limit, because a standby replica has no other work.
func (a *agent) newElectionLock() (*electionLock, error) {
	election := a.options.Election
	if !election.Enabled {
		return &electionLock{}, nil
	}
	var err error
	if a.lease == nil {
		a.lease, err = programs.NewLease(a.karmada.unlimitedWaitConfig, election)
	} else {
		a.lease, err = a.lease.WithConfig(a.karmada.unlimitedWaitConfig)
	}
	if err != nil {
		return nil, err
	}
	created := &electionLock{requestTimeout: election.RetryPeriod, Interface: a.lease}
	created.leases.LeasesGetter, a.lease.Client = a.lease.Client, &created.leases
	return created, nil
}

// Get implements resourcelock.Interface. Requests of a leader have a time limit, because a leader
// must notice in time that it lost the Lease. All other replicas wait for a response.
func (e *electionLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := e.withTimeout(ctx)
	defer cancel()
	return e.Interface.Get(ctx)
}

// Create implements resourcelock.Interface.
func (e *electionLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	ctx, cancel := e.withTimeout(ctx)
	defer cancel()
	return e.recordLeadership(e.Interface.Create(ctx, record))
}

// Update implements resourcelock.Interface.
func (e *electionLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	ctx, cancel := e.withTimeout(ctx)
	defer cancel()
	return e.recordLeadership(e.Interface.Update(ctx, record))
}

func (e *electionLock) recordLeadership(err error) error {
	if err == nil {
		e.hasLed.Store(true)
	}
	return err
}

func (e *electionLock) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.hasLed.Load() {
		return context.WithTimeout(ctx, e.requestTimeout)
	}
	return context.WithCancel(ctx)
}
