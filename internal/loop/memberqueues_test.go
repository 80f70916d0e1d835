package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func namedKey(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// startQueues starts queues and stops them at the end of the test.
func startQueues(t *testing.T, options MemberQueueOptions, reconcile MemberReconcileFunc) *MemberQueues {
	t.Helper()
	queues := NewMemberQueues(options, reconcile)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = queues.Start(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return queues
}

func receive(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatal("nothing happened within a minute")
		return ""
	}
}

var defaultQueueOptions = MemberQueueOptions{Name: "test", Workers: 1, Backoff: Backoff{Base: time.Hour, Max: time.Hour}}

func TestHangingClusterDoesNotDelayOthers(t *testing.T) {
	done := make(chan string, 1)
	queues := startQueues(t, defaultQueueOptions, func(ctx context.Context, cluster string, key types.NamespacedName) (reconcile.Result, error) {
		if cluster == "frozen" {
			<-ctx.Done()
			return reconcile.Result{}, nil
		}
		done <- cluster + "/" + key.Name
		return reconcile.Result{}, nil
	})
	queues.Add("frozen", namedKey("a"), LivePriority, 0)
	queues.Add("healthy", namedKey("b"), LivePriority, 0)
	if got := receive(t, done); got != "healthy/b" {
		t.Errorf("handled %s", got)
	}
}

func TestRetryNow(t *testing.T) {
	tries := make(chan string, 2)
	failed := false
	queues := startQueues(t, defaultQueueOptions, func(_ context.Context, _ string, key types.NamespacedName) (reconcile.Result, error) {
		tries <- key.Name
		if !failed {
			failed = true
			return reconcile.Result{}, errors.New("not ready")
		}
		return reconcile.Result{}, nil
	})
	queues.Add("member1", namedKey("a"), LivePriority, 0)
	receive(t, tries)
	// The queue records the failure a moment after the handler has returned, so the test waits.
	member := queues.queues["member1"]
	for deadline := time.Now().Add(10 * time.Second); ; {
		member.mu.Lock()
		waiting := len(member.waitingKeys)
		member.mu.Unlock()
		if waiting == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the failed key is not waiting")
		}
	}
	queues.RetryNow("member1")
	if got := receive(t, tries); got != "a" {
		t.Errorf("retried %s", got)
	}
}

func TestKeyAwaitsRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes, duringPass := 0, func() {}
		queues := startQueues(t, MemberQueueOptions{Name: "test", Workers: 1, Backoff: Backoff{Base: time.Millisecond, Max: time.Second}},
			func(context.Context, string, types.NamespacedName) (reconcile.Result, error) {
				passes++
				duringPass()
				return reconcile.Result{}, fmt.Errorf("cluster m1: %w", ErrAwaitsRecovery)
			})
		expectPasses := func(when string, want int) {
			t.Helper()
			<-time.After(time.Hour)
			if synctest.Wait(); passes != want {
				t.Fatalf("%s: %d passes, want %d", when, passes, want)
			}
		}
		queues.Add("m1", namedKey("a"), LivePriority, 0)
		expectPasses("while the cluster is lost", 1)
		queues.RetryNow("m1")
		expectPasses("after its recovery", 2)
		duringPass = func() {
			duringPass = func() {}
			queues.RetryNow("m1")
		}
		queues.RetryNow("m1")
		expectPasses("after a recovery during a pass", 4)
	})
}

func TestPanicIsRetried(t *testing.T) {
	done := make(chan string, 1)
	queues := startQueues(t, defaultQueueOptions, func(_ context.Context, _ string, key types.NamespacedName) (reconcile.Result, error) {
		if key.Name == "bad" {
			panic("a bug")
		}
		done <- key.Name
		return reconcile.Result{}, nil
	})
	queues.Add("member1", namedKey("bad"), LivePriority, 0)
	queues.Add("member1", namedKey("good"), LivePriority, 0)
	if got := receive(t, done); got != "good" {
		t.Errorf("handled %s", got)
	}
}

func TestKeysAddedBeforeStart(t *testing.T) {
	done := make(chan string, 1)
	queues := NewMemberQueues(defaultQueueOptions, func(_ context.Context, cluster string, key types.NamespacedName) (reconcile.Result, error) {
		done <- cluster + "/" + key.Name
		return reconcile.Result{}, nil
	})
	queues.Add("member1", namedKey("early"), LowPriority, 0)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = queues.Start(ctx) })
	defer func() { cancel(); wg.Wait() }()
	if got := receive(t, done); got != "member1/early" {
		t.Errorf("handled %s", got)
	}
}

func TestRemoveCluster(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ended := make(chan string, 1)
	started := make(chan string, 1)
	queues := NewMemberQueues(defaultQueueOptions, func(ctx context.Context, cluster string, _ types.NamespacedName) (reconcile.Result, error) {
		started <- cluster
		<-ctx.Done()
		ended <- cluster
		return reconcile.Result{}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = queues.Start(ctx) })
	queues.Add("member1", namedKey("a"), LivePriority, 0)
	receive(t, started)
	queues.RemoveCluster("member1")
	if got := receive(t, ended); got != "member1" {
		t.Errorf("ended %s", got)
	}
	cancel()
	wg.Wait()
}

func TestStateIsDeletedAfterTheLastPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		state := map[string]bool{}
		options := defaultQueueOptions
		options.OnRemoved = func(cluster string) {
			mu.Lock()
			defer mu.Unlock()
			delete(state, cluster)
		}
		finish := make(chan struct{})
		queues := startQueues(t, options, func(_ context.Context, cluster string, _ types.NamespacedName) (reconcile.Result, error) {
			<-finish
			mu.Lock()
			defer mu.Unlock()
			state[cluster] = true
			return reconcile.Result{}, nil
		})
		for _, cluster := range []string{"removed", "added again"} {
			queues.Add(cluster, namedKey("a"), LivePriority, 0)
		}
		synctest.Wait()
		queues.RemoveCluster("removed")
		queues.RemoveCluster("added again")
		queues.Add("added again", namedKey("a"), LivePriority, 0)
		close(finish)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if state["removed"] || !state["added again"] {
			t.Errorf("the clusters with state are %v", state)
		}
	})
}

func TestNoPoolForRemovedCluster(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var gone sync.Map
	handled := make(chan string, 2)
	served := defaultQueueOptions
	served.IsServed = func(_ context.Context, cluster string) bool { _, ended := gone.Load(cluster); return !ended }
	queues := NewMemberQueues(served, func(_ context.Context, cluster string, key types.NamespacedName) (reconcile.Result, error) {
		handled <- cluster + "/" + key.Name
		return reconcile.Result{}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = queues.Start(ctx) })
	defer func() { cancel(); wg.Wait() }()
	queues.Add("member1", namedKey("a"), LivePriority, 0)
	receive(t, handled)

	gone.Store("member1", true)
	queues.RemoveCluster("member1")
	queues.Add("member1", namedKey("late"), LivePriority, 0)
	queues.mu.Lock()
	left := len(queues.queues)
	queues.mu.Unlock()
	if left != 0 {
		t.Fatalf("%d queues are left of a removed cluster", left)
	}

	gone.Delete("member1")
	queues.Add("member1", namedKey("again"), LivePriority, 0)
	if got := receive(t, handled); got != "member1/again" {
		t.Errorf("after the cluster was added again: %s", got)
	}
}

func TestKeysAddedBeforeStartAreDeduplicated(t *testing.T) {
	queues := NewMemberQueues(defaultQueueOptions, nil)
	for range 3 {
		queues.Add("member1", namedKey("a"), LowPriority, 0)
		queues.Add("member1", namedKey("a"), LivePriority, 0)
	}
	if len(queues.pending) != 1 {
		t.Errorf("%d entries for one key", len(queues.pending))
	}
	for _, opts := range queues.pending {
		if *opts.Priority != LivePriority {
			t.Errorf("the key waits with priority %d", *opts.Priority)
		}
	}
}

func TestWorkersStopWithContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	started := make(chan string, 3)
	queues := NewMemberQueues(defaultQueueOptions, func(ctx context.Context, cluster string, _ types.NamespacedName) (reconcile.Result, error) {
		started <- cluster
		if cluster == "frozen" {
			<-ctx.Done()
		}
		return reconcile.Result{}, errors.New("again")
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = queues.Start(ctx) })
	for _, cluster := range []string{"frozen", "failing", "healthy"} {
		queues.Add(cluster, namedKey("a"), LivePriority, 0)
		receive(t, started)
	}
	cancel()
	wg.Wait()
}
