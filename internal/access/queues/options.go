package queues

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Backoff is how long what failed waits until it is tried again: Base, doubled with
// every failure in a row, and Max at most. The zero value is DefaultBackoff.
type Backoff struct {
	Base, Max time.Duration
}

// DefaultBackoff ends within a minute: what failed for as long as something was away
// goes on soon after that is back, which for many objects nothing else tells.
func DefaultBackoff() Backoff {
	return Backoff{Base: 5 * time.Millisecond, Max: time.Minute}
}

// Limiter lets each item wait for itself.
func Limiter[T comparable](retry Backoff) workqueue.TypedRateLimiter[T] {
	if retry == (Backoff{}) {
		retry = DefaultBackoff()
	}
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](retry.Base, retry.Max)
}

// Options are what every controller of a manager has to say: how many workers it has,
// at least one, and how long what failed waits. Without a word on that it would be
// a quarter of an hour.
func Options[T comparable](mgr manager.Manager, workers int, retry Backoff) controller.TypedOptions[T] {
	return controller.TypedOptions[T]{
		MaxConcurrentReconciles: max(workers, 1), NewQueue: For[T](mgr), RateLimiter: Limiter[T](retry),
	}
}
