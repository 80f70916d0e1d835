package loop

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Queue is the queue of a controller.
type Queue[T comparable] = workqueue.TypedRateLimitingInterface[T]

// Priorities of queued items.
const (
	// LivePriority is for changes of an object itself.
	LivePriority = 0
	// LowPriority is for objects of an initial list, and for objects that are queued because
	// another object changed. Workers handle the objects that users change before these objects.
	LowPriority = handler.LowPriority
)

// PriorityOf returns the priority of an object that an informer delivers for the first time:
// LowPriority if the object is in the initial list, else LivePriority.
func PriorityOf(isInInitialList bool) int {
	if isInInitialList {
		return LowPriority
	}
	return LivePriority
}

// EnqueueLowPriority queues items with LowPriority after a delay. A delay of 0 queues the items at
// once. In a queue without priorities only the delay has an effect.
func EnqueueLowPriority[T comparable](queue Queue[T], delay time.Duration, items ...T) {
	if byPriority, ok := queue.(priorityqueue.PriorityQueue[T]); ok {
		byPriority.AddWithOpts(priorityqueue.AddOpts{After: delay, Priority: new(LowPriority)}, items...)
		return
	}
	for _, item := range items {
		queue.AddAfter(item, delay)
	}
}
