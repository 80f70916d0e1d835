package search

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// The durations of the Lease, which are the defaults of other components.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// leaderTasks run in one replica of the server at a time, because they write to a place that all
// replicas share.
type leaderTasks struct {
	// lock is the lock of the replicas. nil means that there is only one replica.
	lock  resourcelock.Interface
	tasks []func(context.Context)
}

// run runs the tasks whenever this replica is the leader, until ctx ends.
func (l *leaderTasks) run(ctx context.Context) {
	if l.lock == nil {
		l.runTasks(ctx)
		return
	}
	for ctx.Err() == nil {
		if err := l.runElection(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Electing the replica that writes statuses and to OpenSearch, is retried")
			select {
			case <-ctx.Done():
			case <-time.After(leaseDuration):
			}
		}
	}
}

// runElection waits until this replica is the leader, runs the tasks, and returns when it is no longer
// the leader.
func (l *leaderTasks) runElection(ctx context.Context) error {
	// The Lease is released only after the tasks have ended.
	election, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var isLeading atomic.Bool
	var running sync.WaitGroup
	running.Add(1)
	finish := sync.OnceFunc(running.Done)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true, Name: ServiceName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer finish()
				defer stop()
				isLeading.Store(true)
				leading, cancel := context.WithCancel(leading)
				defer cancel()
				unlink := context.AfterFunc(ctx, cancel)
				defer unlink()
				l.runTasks(leading)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("creating the leader election: %w", err)
	}
	unlink := context.AfterFunc(ctx, func() {
		if !isLeading.Load() {
			stop()
		}
	})
	defer unlink()
	elector.Run(election)
	if !isLeading.Load() {
		// The election ended before this replica was the leader.
		finish()
	}
	running.Wait()
	return nil
}

func (l *leaderTasks) runTasks(ctx context.Context) {
	var running sync.WaitGroup
	for _, task := range l.tasks {
		running.Go(func() { task(ctx) })
	}
	running.Wait()
}
