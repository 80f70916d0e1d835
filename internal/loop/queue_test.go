package loop

import (
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// The test shuts down many queues, because only few of these shutdowns would hang without
// WithSafeShutdown.
func TestWorkersLeaveQueueOnShutdown(t *testing.T) {
	const ends, workers, items = 2000, 8, 100
	for range ends {
		made := NewPriorityQueue("test", workqueue.DefaultTypedControllerRateLimiter[int]())
		queue, ok := made.(priorityqueue.PriorityQueue[int])
		if !ok {
			t.Fatalf("%T is not by priority", made)
		}
		var running sync.WaitGroup
		begun := make(chan struct{}, workers*items)
		for range workers {
			running.Go(func() {
				for {
					item, _, ended := queue.GetWithPriority()
					if ended {
						return
					}
					begun <- struct{}{}
					queue.Done(item)
				}
			})
		}
		for item := range items {
			queue.Add(item)
		}
		<-begun
		queue.ShutDown()
		if !queue.ShuttingDown() {
			t.Fatal("ShuttingDown is false after ShutDown")
		}
		left := make(chan struct{})
		go func() { running.Wait(); close(left) }()
		select {
		case <-left:
		case <-time.After(time.Minute):
			t.Fatal("a worker still runs a minute after the shutdown")
		}
	}
}

func TestPriorityOrder(t *testing.T) {
	made := NewPriorityQueue("test", workqueue.DefaultTypedControllerRateLimiter[string]())
	queue, ok := made.(priorityqueue.PriorityQueue[string])
	if !ok {
		t.Fatalf("%T is not by priority", made)
	}
	defer queue.ShutDown()
	low, high := -1, 1
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, "low")
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: &high}, "high")
	for _, want := range []string{"high", "low"} {
		got, _, ended := queue.GetWithPriority()
		if got != want || ended {
			t.Errorf("got %q, %t, want %q", got, ended, want)
		}
		queue.Done(got)
	}
}
