package looptest

import (
	"context"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/loop"
)

// QueuedBy calls change and returns the requests that the source queues because of the change, in
// any order. It fails the test if a request does not have low priority.
func QueuedBy[request comparable](t *testing.T, newSource func() source.TypedSource[request], change func()) (queued []request) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		queue := priorityqueue.New("test", func(o *priorityqueue.Opts[request]) {
			o.RateLimiter = loop.NewRateLimiter[request](loop.DefaultBackoff())
		})
		defer queue.ShutDown()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := newSource().Start(ctx, queue); err != nil {
			t.Fatal(err)
		}
		change()
		synctest.Wait()
		for range queue.Len() {
			item, priority, _ := queue.GetWithPriority()
			if priority != loop.LowPriority {
				t.Errorf("%v has priority %d, want %d", item, priority, loop.LowPriority)
			}
			queue.Done(item)
			queued = append(queued, item)
		}
	})
	return queued
}
