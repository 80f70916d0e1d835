package search

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// newReplicas returns leaderTasks of two replicas, and the number of replicas whose task runs.
func newReplicas() (replicas [2]*leaderTasks, leading *atomic.Int32) {
	leases, leading := fake.NewClientset().CoordinationV1(), &atomic.Int32{}
	for i, identity := range []string{"a", "b"} {
		replicas[i] = &leaderTasks{
			lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "ns", Name: ServiceName}, Client: leases,
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			},
			tasks: []func(context.Context){func(ctx context.Context) {
				leading.Add(1)
				<-ctx.Done()
				leading.Add(-1)
			}},
		}
	}
	return replicas, leading
}

func TestOneReplicaRunsTheTasksOfALeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replicas, leading := newReplicas()
		first, endFirst := context.WithCancel(t.Context())
		second, endSecond := context.WithCancel(t.Context())
		firstEnded, secondEnded := make(chan struct{}), make(chan struct{})
		go func() { defer close(firstEnded); replicas[0].run(first) }()
		<-time.After(time.Second)
		go func() { defer close(secondEnded); replicas[1].run(second) }()
		<-time.After(time.Minute)
		if got := leading.Load(); got != 1 {
			t.Errorf("%d replicas run the tasks, want 1", got)
		}
		endFirst()
		<-firstEnded
		// The Lease was released, so the other replica need not wait until the Lease expires.
		<-time.After(2 * retryPeriod)
		if got := leading.Load(); got != 1 {
			t.Errorf("after the end of the leader, %d replicas run the tasks, want 1", got)
		}
		endSecond()
		<-secondEnded
		if got := leading.Load(); got != 0 {
			t.Errorf("%d tasks outlive their replicas", got)
		}
	})
}

func TestASingleReplicaNeedsNoLease(t *testing.T) {
	t.Parallel()
	ran := false
	single := leaderTasks{tasks: []func(context.Context){func(context.Context) { ran = true }}}
	single.run(t.Context())
	if !ran {
		t.Error("the task did not run")
	}
}
