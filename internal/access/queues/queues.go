// Package queues answers "what do the workers of a controller get their work from,
// and how does that end?": a queue by priority that lets every worker go when it is
// shut down.
//
// That of controller-runtime may hand an item to a worker that has left at the same
// moment, and waits for it for ever. A worker that is then done with its last item
// waits for the queue, the process waits for the worker, and in the end it gives
// up, with an error and after the time that others need to take over from it.
package queues

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// For makes the queues of the controllers of a manager; nil, which means those of
// controller-runtime, when they are not to be by priority.
func For[T comparable](mgr manager.Manager) func(string, workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	if by := mgr.GetControllerOptions().UsePriorityQueue; by != nil && !*by {
		return nil
	}
	return ByPriority[T]
}

// ByPriority makes a queue by priority with that name in metrics.
func ByPriority[T comparable](name string, limit workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	return Ending(priorityqueue.New(name, func(o *priorityqueue.Opts[T]) { o.RateLimiter = limit }))
}

// Ending lets the workers of a queue go when it is shut down.
func Ending[T comparable](of priorityqueue.PriorityQueue[T]) priorityqueue.PriorityQueue[T] {
	e := &ending[T]{PriorityQueue: of}
	e.left = sync.NewCond(&e.mu)
	return e
}

// ending shuts a queue down only when nobody waits for an item of it any more.
type ending[T comparable] struct {
	priorityqueue.PriorityQueue[T]

	mu      sync.Mutex
	left    *sync.Cond
	waiting int
	ended   bool
}

// GetWithPriority waits for an item, or for the end.
func (e *ending[T]) GetWithPriority() (item T, priority int, ended bool) {
	var none T
	if !e.enter() {
		return none, 0, true
	}
	item, priority, ended = e.PriorityQueue.GetWithPriority()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting--
	if e.ended {
		// It may be what the next one is to be woken with.
		e.PriorityQueue.Done(item)
		e.left.Signal()
		return none, 0, true
	}
	return item, priority, ended
}

// enter counts somebody who is about to wait, unless the end has come.
func (e *ending[T]) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		e.waiting++
	}
	return !e.ended
}

// Get is GetWithPriority without the priority.
func (e *ending[T]) Get() (item T, ended bool) {
	item, _, ended = e.GetWithPriority()
	return item, ended
}

// ShuttingDown tells whether the end has come.
func (e *ending[T]) ShuttingDown() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

// ShutDown wakes those who wait, one after the other, with an item that none of them
// gets to see, and then ends the queue. Calling it again does nothing.
func (e *ending[T]) ShutDown() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	e.ended = true
	for e.waiting > 0 {
		var wake T
		e.Add(wake)
		e.left.Wait()
	}
	e.PriorityQueue.ShutDown()
}

// ShutDownWithDrain is ShutDown: no controller waits for what is still queued.
func (e *ending[T]) ShutDownWithDrain() { e.ShutDown() }
