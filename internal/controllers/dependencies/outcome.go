package dependencies

import (
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
)

const (
	// staleRetryDelay is the time until the next reconcile after the cache was out of date.
	staleRetryDelay = 50 * time.Millisecond
	// blockedRetryDelay is the time until the next reconcile of a dependent that waits for
	// another component.
	blockedRetryDelay = time.Second
	// userRetryDelay is the time until the next reconcile of a dependent that waits for a
	// user.
	userRetryDelay = time.Minute
)

var (
	// errStale is returned when a write or a decision meets a newer state than the one that
	// was read.
	errStale = errors.New("the cache is out of date")
	// errTerminating is returned when a binding must be deleted before a new one can be
	// created.
	errTerminating = errors.New("it is being deleted")
)

// finishReconcile records a failure as an event and returns the result for the queue.
func (r *reconciler) finishReconcile(dependent *workv1alpha2.ResourceBinding, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		r.events.ClearFailure(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesFailed)
	case !holdsForAll(err, isTransient):
		r.events.RecordFailure(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesFailed, err)
	}
	return resultFor(err)
}

// resultFor converts an error to a result for the queue. A stale cache is retried shortly
// without a log line. An error that a user must resolve is retried after userRetryDelay.
func resultFor(err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{}, nil
	case holdsForAll(err, isCacheStale):
		return reconcile.Result{RequeueAfter: staleRetryDelay}, nil
	case holdsForAll(err, isTransient):
		return reconcile.Result{RequeueAfter: blockedRetryDelay}, nil
	case holdsForAll(err, func(one error) bool { return isTransient(one) || needsUserAction(one) }):
		return reconcile.Result{RequeueAfter: userRetryDelay}, nil
	}
	return reconcile.Result{}, err
}

// holdsForAll reports whether a predicate holds for an error, or for all errors that it joins.
func holdsForAll(err error, predicate func(error) bool) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return predicate(err)
	}
	for _, one := range joined.Unwrap() {
		if !holdsForAll(one, predicate) {
			return false
		}
	}
	return true
}

func isCacheStale(err error) bool {
	return errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// isTransient reports whether an error disappears without a change by a user.
func isTransient(err error) bool {
	var ownerError *policy.OwnerError
	return isCacheStale(err) || errors.Is(err, errTerminating) || errors.As(err, &ownerError)
}

// needsUserAction reports whether an error lasts until a user changes something.
func needsUserAction(err error) bool {
	var collision *policy.CollisionError
	var rejected *tenancy.ForbiddenError
	return errors.As(err, &collision) || errors.As(err, &rejected)
}

// isNamespaceTerminating reports whether a create was rejected because the namespace is being
// deleted.
func isNamespaceTerminating(err error) bool {
	return err != nil && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// notFoundAsStale converts NotFound for an object that should be changed to errStale.
func notFoundAsStale(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %v", errStale, err) //nolint:errorlint // the next reconcile finds out why
	}
	return err
}

// conflicts holds the conflict message of each binding whose dependents require different
// settings, so that an event is recorded when the conflict changes, and not in every
// reconcile.
type conflicts struct {
	mu        sync.Mutex
	byBinding *lru.Cache
}

// maxConflicts is the maximum number of bindings in conflicts. The conflict of a removed one
// is recorded again with its next write.
const maxConflicts = 10_000

func newConflicts() *conflicts { return &conflicts{byBinding: lru.New(maxConflicts)} }

// bindingConflict is the last conflict message of a binding, and whether it was recorded as an
// event.
type bindingConflict struct {
	message  string
	recorded bool
}

// shouldRecord stores a message, empty for no conflict, and reports whether to record an
// event. A conflict that exists in the first reconcile is not recorded, unless this process
// has just written the binding. That write may already have been seen by another reconcile.
func (q *conflicts) shouldRecord(uid types.UID, message string, written bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, known := bindingConflict{}, false
	if stored, ok := q.byBinding.Get(uid); ok {
		last, known = stored.(bindingConflict)
	}
	changed := known && last.message != message
	record := changed || written && !last.recorded
	q.byBinding.Add(uid, bindingConflict{message: message, recorded: record || last.recorded && !changed})
	return record
}

// recordConflictEvent records on an attached binding that its dependents require different
// settings. A binding that a policy places gets its settings from the policy, so no event is
// recorded.
func (r *reconciler) recordConflictEvent(attached binding.Object, dependents []*workv1alpha2.ResourceBinding, written bool) {
	err := dependency.SettingsConflict(attached.BindingSpec().Resource, dependents)
	if attached.BindingSpec().Placement != nil {
		err = nil
	}
	message := ""
	if err != nil {
		message = err.Error()
	}
	if !r.conflicts.shouldRecord(attached.GetUID(), message, written) {
		return
	}
	if err == nil {
		r.events.ClearFailure(attached, workv1alpha2.EventReasonDependencyPolicyConflict)
		return
	}
	r.events.RecordFailure(attached, workv1alpha2.EventReasonDependencyPolicyConflict, err)
}
