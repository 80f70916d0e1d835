// Package queues answers: from which queue do the workers of a controller get items, and how
// does it shut down? It is a priority queue whose workers all return when it is shut down.
//
// The queue of controller-runtime may hand an item to a worker that has returned at the same
// moment, and then waits for it for ever. Other workers wait for the queue, and the process
// waits for the workers. It ends after its shutdown timeout with an error. Until then no other
// replica can take over.
package queues

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// NewQueueFunc returns the function that makes the queues for the controllers of a manager. It returns
// nil, which selects the queues of controller-runtime, if priority queues are disabled.
func NewQueueFunc[T comparable](mgr manager.Manager) func(string, workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	if by := mgr.GetControllerOptions().UsePriorityQueue; by != nil && !*by {
		return nil
	}
	return NewPriorityQueue[T]
}

// NewPriorityQueue returns a priority queue with that name in metrics.
func NewPriorityQueue[T comparable](name string, limit workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	return WithSafeShutdown(priorityqueue.New(name, func(o *priorityqueue.Opts[T]) { o.RateLimiter = limit }))
}

// WithSafeShutdown wraps a queue so that its workers return when it is shut down.
func WithSafeShutdown[T comparable](of priorityqueue.PriorityQueue[T]) priorityqueue.PriorityQueue[T] {
	e := &safeShutdownQueue[T]{PriorityQueue: of}
	e.workerLeft = sync.NewCond(&e.mu)
	return e
}

// safeShutdownQueue shuts down the inner queue only after no worker waits for an item of it.
type safeShutdownQueue[T comparable] struct {
	priorityqueue.PriorityQueue[T]

	mu             sync.Mutex
	workerLeft     *sync.Cond
	waitingWorkers int
	isShutDown     bool
}

// GetWithPriority waits for an item or for the shutdown.
func (e *safeShutdownQueue[T]) GetWithPriority() (item T, priority int, ended bool) {
	var none T
	if !e.startWaiting() {
		return none, 0, true
	}
	item, priority, ended = e.PriorityQueue.GetWithPriority()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waitingWorkers--
	if e.isShutDown {
		// It may be the item that wakes the next worker.
		e.PriorityQueue.Done(item)
		e.workerLeft.Signal()
		return none, 0, true
	}
	return item, priority, ended
}

// startWaiting counts a worker that is about to wait. It returns false after the shutdown.
func (e *safeShutdownQueue[T]) startWaiting() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.isShutDown {
		e.waitingWorkers++
	}
	return !e.isShutDown
}

// Get is GetWithPriority without the priority.
func (e *safeShutdownQueue[T]) Get() (item T, ended bool) {
	item, _, ended = e.GetWithPriority()
	return item, ended
}

// ShuttingDown reports whether ShutDown was called.
func (e *safeShutdownQueue[T]) ShuttingDown() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isShutDown
}

// ShutDown wakes the waiting workers, one after the other, with an item that they do not
// return. Then it shuts the inner queue down. Calling it again does nothing.
func (e *safeShutdownQueue[T]) ShutDown() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isShutDown {
		return
	}
	e.isShutDown = true
	for e.waitingWorkers > 0 {
		var wake T
		e.Add(wake)
		e.workerLeft.Wait()
	}
	e.PriorityQueue.ShutDown()
}

// ShutDownWithDrain is ShutDown: no controller waits for queued items.
func (e *safeShutdownQueue[T]) ShutDownWithDrain() { e.ShutDown() }
