package queues

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Backoff is the delay before a failed item is retried: Base, doubled with each consecutive
// failure, and at most Max. The zero value is DefaultBackoff.
type Backoff struct {
	Base, Max time.Duration
}

// DefaultBackoff has a maximum of one minute. After an outage items are retried soon, although
// for many of them there is no event that shows its end.
func DefaultBackoff() Backoff {
	return Backoff{Base: 5 * time.Millisecond, Max: time.Minute}
}

// NewRateLimiter returns a rate limiter with a separate backoff for each item.
func NewRateLimiter[T comparable](retry Backoff) workqueue.TypedRateLimiter[T] {
	if retry == (Backoff{}) {
		retry = DefaultBackoff()
	}
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](retry.Base, retry.Max)
}

// ControllerOptions returns the options for a controller of a manager: the number of workers, at least
// one, and the backoff. The maximum backoff of controller-runtime would be about a quarter of
// an hour.
func ControllerOptions[T comparable](mgr manager.Manager, workers int, retry Backoff) controller.TypedOptions[T] {
	return controller.TypedOptions[T]{
		MaxConcurrentReconciles: max(workers, 1), NewQueue: NewQueueFunc[T](mgr), RateLimiter: NewRateLimiter[T](retry),
	}
}
