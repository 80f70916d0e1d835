package templates

import (
	"context"
	"time"

	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// Queue is the queue of templates. It is opened when the controller of templates starts. Before
// that, the methods that add requests must not be called.
type Queue struct {
	inner  loop.Queue[Request]
	opened chan struct{}
}

// NewQueue returns a queue that is not open yet.
func NewQueue() *Queue { return &Queue{opened: make(chan struct{})} }

// Open sets the queue of the controller. It must be called only once.
func (q *Queue) Open(inner loop.Queue[Request]) {
	q.inner = inner
	close(q.opened)
}

// IsOpen reports whether the queue was opened.
func (q *Queue) IsOpen() bool {
	select {
	case <-q.opened:
		return true
	default:
		return false
	}
}

// WaitUntilOpen returns when the queue is open. It returns an error if ctx ends earlier.
func (q *Queue) WaitUntilOpen(ctx context.Context) error {
	select {
	case <-q.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Add queues requests.
func (q *Queue) Add(requests ...Request) {
	for _, request := range requests {
		q.inner.Add(request)
	}
}

// AddAfter queues a request after a delay.
func (q *Queue) AddAfter(request Request, delay time.Duration) { q.inner.AddAfter(request, delay) }

// AddLowPriority queues templates that a change of a policy affects. They are queued behind the
// changes by users.
func (q *Queue) AddLowPriority(cause policy.Trigger, references ...Ref) {
	for _, r := range references {
		loop.EnqueueLowPriority(q.inner, 0, r.Request(cause))
	}
}
