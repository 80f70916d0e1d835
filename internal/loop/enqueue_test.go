package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func TestEnqueueLowPriority(t *testing.T) {
	queue, ok := NewPriorityQueue("test", workqueue.DefaultTypedControllerRateLimiter[string]()).(priorityqueue.PriorityQueue[string])
	if !ok {
		t.Fatal("the queue has no priorities")
	}
	defer queue.ShutDown()
	EnqueueLowPriority(queue, 0, "low", "low too")
	queue.Add("live")
	item, priority, _ := queue.GetWithPriority()
	if item != "live" || priority != LivePriority {
		t.Errorf("first %q with priority %d, want %q with %d", item, priority, "live", LivePriority)
	}
	queue.Done(item)
	if _, priority, _ := queue.GetWithPriority(); priority != LowPriority {
		t.Errorf("the others have priority %d, want %d", priority, LowPriority)
	}
}

func TestEnqueueLowPriorityWithDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		defer queue.ShutDown()
		started := time.Now()
		EnqueueLowPriority(queue, time.Minute, "later")
		if item, _ := queue.Get(); item != "later" || time.Since(started) < time.Minute {
			t.Errorf("%q after %s, want %q after %s", item, time.Since(started), "later", time.Minute)
		}
	})
}

func TestPriorityOf(t *testing.T) {
	if PriorityOf(true) != LowPriority || PriorityOf(false) != LivePriority {
		t.Errorf("initial list %d, live %d", PriorityOf(true), PriorityOf(false))
	}
}
