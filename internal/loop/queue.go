package loop

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// NewQueueFunc returns the function that creates the queues for the controllers of a manager. If
// priority queues are disabled, it returns nil, which selects the default queues of
// controller-runtime.
func NewQueueFunc[T comparable](mgr manager.Manager) func(string, workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	if by := mgr.GetControllerOptions().UsePriorityQueue; by != nil && !*by {
		return nil
	}
	return NewPriorityQueue[T]
}

// NewPriorityQueue returns a priority queue that uses the given name in metrics.
func NewPriorityQueue[T comparable](name string, limit workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	return WithSafeShutdown(priorityqueue.New(name, func(o *priorityqueue.Opts[T]) { o.RateLimiter = limit }))
}

// WithSafeShutdown wraps a queue so that its workers return when the queue is shut down.
//
// During its shutdown, the queue of controller-runtime may hand an item to a worker that has just
// returned, and then waits forever for that worker. The other workers wait for the queue, and the
// process waits for the workers. So the process ends only after its shutdown timeout, with an
// error, and no other replica can take over until then.
func WithSafeShutdown[T comparable](of priorityqueue.PriorityQueue[T]) priorityqueue.PriorityQueue[T] {
	e := &safeShutdownQueue[T]{PriorityQueue: of}
	e.workerLeft = sync.NewCond(&e.mu)
	return e
}

// safeShutdownQueue shuts down the inner queue only after no worker waits for an item of the inner
// queue.
type safeShutdownQueue[T comparable] struct {
	priorityqueue.PriorityQueue[T]

	mu             sync.Mutex
	workerLeft     *sync.Cond
	waitingWorkers int
	isShutDown     bool
}

// GetWithPriority waits for an item or for the shutdown of the queue.
func (s *safeShutdownQueue[T]) GetWithPriority() (item T, priority int, ended bool) {
	var none T
	if !s.startWaiting() {
		return none, 0, true
	}
	item, priority, ended = s.PriorityQueue.GetWithPriority()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitingWorkers--
	if s.isShutDown {
		// The item is marked as done, because ShutDown may add the same item again to wake the next
		// worker.
		s.PriorityQueue.Done(item)
		s.workerLeft.Signal()
		return none, 0, true
	}
	return item, priority, ended
}

// startWaiting counts a worker that is about to wait for an item. It returns false after the
// shutdown.
func (s *safeShutdownQueue[T]) startWaiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isShutDown {
		s.waitingWorkers++
	}
	return !s.isShutDown
}

// Get is GetWithPriority without the priority.
func (s *safeShutdownQueue[T]) Get() (item T, ended bool) {
	item, _, ended = s.GetWithPriority()
	return item, ended
}

// ShuttingDown reports whether ShutDown was called.
func (s *safeShutdownQueue[T]) ShuttingDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isShutDown
}

// ShutDown wakes the waiting workers one after the other: it adds an item, and a worker drops the
// item and returns. Then ShutDown shuts down the inner queue. Further calls do nothing.
func (s *safeShutdownQueue[T]) ShutDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isShutDown {
		return
	}
	s.isShutDown = true
	for s.waitingWorkers > 0 {
		var wake T
		s.Add(wake)
		s.workerLeft.Wait()
	}
	s.PriorityQueue.ShutDown()
}

// ShutDownWithDrain calls ShutDown, because no controller waits until the queued items are
// processed.
func (s *safeShutdownQueue[T]) ShutDownWithDrain() { s.ShutDown() }
