package loop

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ErrStale is returned when a decision or a write must wait until the cache is current.
var ErrStale = errors.New("the cache is out of date")

// IsStale reports whether an error means only that the cache was out of date: the error is
// ErrStale, or the API server rejected a write because it was computed from an old state. For a
// joined error it reports whether all joined errors have this meaning.
func IsStale(err error) bool {
	return HoldsForAll(err, func(one error) bool {
		return errors.Is(one, ErrStale) || apierrors.IsConflict(one) || apierrors.IsAlreadyExists(one)
	})
}

// HoldsForAll reports whether a predicate holds for an error, or for all errors that it joins.
// It reports false for nil.
func HoldsForAll(err error, predicate func(error) bool) bool {
	if err == nil {
		return false
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return predicate(err)
	}
	for _, one := range joined.Unwrap() {
		if !HoldsForAll(one, predicate) {
			return false
		}
	}
	return true
}

// Result converts the error of a pass to a result for the queue, which retries any error with its
// backoff. A stale cache is retried without a log line.
func Result(err error) (reconcile.Result, error) {
	if IsStale(err) {
		return StaleResult(), nil
	}
	return reconcile.Result{}, err
}

// StaleResult returns the result of a pass that found that the cache is out of date. The queue
// retries the pass with its backoff, as after an error, but the pass does not count as failed.
func StaleResult() reconcile.Result {
	return reconcile.Result{Requeue: true} //nolint:staticcheck // only this field selects the backoff without an error
}

// StaleIfNotFound converts a NotFound error to ErrStale. It is for an object that the cache
// contains: the next pass finds out whether that object was deleted.
func StaleIfNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %v", ErrStale, err) //nolint:errorlint // with two wrapped errors IsStale would report false
	}
	return err
}

// IsNamespaceTerminating reports whether the API server rejected the creation of an object
// because its namespace is being deleted.
func IsNamespaceTerminating(err error) bool {
	return err != nil && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
