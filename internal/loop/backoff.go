package loop

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Backoff configures the delay before a failed item is retried. The delay starts at Base, doubles
// with each consecutive failure, and is at most Max. A random part of up to one half is subtracted.
// The zero value means DefaultBackoff.
type Backoff struct {
	Base, Max time.Duration
}

// DefaultBackoff returns a backoff with a maximum of one minute. The maximum is short because often
// no event reports the end of an outage, so that only a retry can notice that end.
func DefaultBackoff() Backoff {
	return Backoff{Base: 5 * time.Millisecond, Max: time.Minute}
}

// NewRateLimiter returns a rate limiter with a separate backoff for each item.
func NewRateLimiter[T comparable](retry Backoff) workqueue.TypedRateLimiter[T] {
	if retry == (Backoff{}) {
		retry = DefaultBackoff()
	}
	return jitteredRateLimiter[T]{workqueue.NewTypedItemExponentialFailureRateLimiter[T](retry.Base, retry.Max)}
}

// jitteredRateLimiter distributes retries over time. Items that began to fail together would be
// retried together forever otherwise. If they all need something that serves only few requests at a
// time, such as a slow webhook, almost all of them would fail again, and it would be idle until the
// next retry.
type jitteredRateLimiter[T comparable] struct {
	workqueue.TypedRateLimiter[T]
}

func (s jitteredRateLimiter[T]) When(item T) time.Duration {
	return wait.Jitter(s.TypedRateLimiter.When(item)/2, 1)
}

// ControllerOptions returns the options for a controller of a manager: the number of workers, at
// least one, and the backoff. A zero backoff means DefaultBackoff, because the default maximum of
// controller-runtime is about a quarter of an hour.
func ControllerOptions[T comparable](mgr manager.Manager, workers int, retry Backoff) controller.TypedOptions[T] {
	return controller.TypedOptions[T]{
		MaxConcurrentReconciles: max(workers, 1), NewQueue: NewQueueFunc[T](mgr), RateLimiter: NewRateLimiter[T](retry),
	}
}
