package dependencies

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/loop"
)

const (
	// blockedRetryDelay is the delay before the next reconcile of a dependent that waits for
	// another component.
	blockedRetryDelay = time.Second
	// userRetryDelay is the delay before the next reconcile of a dependent that waits for a user.
	userRetryDelay = time.Minute
)

// errTerminating is returned if a binding of the same name is being deleted. A new binding can be
// created only after that deletion.
var errTerminating = errors.New("it is being deleted")

// finishReconcile records a failure as an event and returns the result for the queue.
func (r *reconciler) finishReconcile(dependent *workv1alpha2.ResourceBinding, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		r.events.ClearFailure(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesFailed)
	case !loop.HoldsForAll(err, isTransient):
		r.events.RecordFailure(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesFailed, err)
	}
	return resultFor(err)
}

// resultFor converts an error to a result for the queue. A stale cache is retried with backoff,
// without a log line, and an error that a user must resolve after userRetryDelay.
func resultFor(err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{}, nil
	case loop.IsStale(err):
		return loop.Result(err)
	case loop.HoldsForAll(err, isTransient):
		return reconcile.Result{RequeueAfter: blockedRetryDelay}, nil
	case loop.HoldsForAll(err, func(one error) bool { return isTransient(one) || needsUserAction(one) }):
		return reconcile.Result{RequeueAfter: userRetryDelay}, nil
	}
	return reconcile.Result{}, err
}

// isTransient reports whether an error can end without a change by a user.
func isTransient(err error) bool {
	var ownerError *policy.OwnerError
	return loop.IsStale(err) || errors.Is(err, errTerminating) || errors.As(err, &ownerError)
}

// needsUserAction reports whether an error lasts until a user makes a change.
func needsUserAction(err error) bool {
	var rejected *tenancy.ForbiddenError
	return errors.As(err, &rejected)
}

// conflicts stores the conflict message of each binding whose dependents require different
// settings, so that an event is recorded only when the conflict changes.
type conflicts struct {
	mu        sync.Mutex
	byBinding *lru.Cache
}

// maxConflicts is the maximum number of bindings in conflicts. If the entry of a binding was
// evicted, the next write of the binding records its conflict again.
const maxConflicts = 10_000

func newConflicts() *conflicts { return &conflicts{byBinding: lru.New(maxConflicts)} }

// bindingConflict is the last conflict message of a binding, and whether it was recorded as an
// event.
type bindingConflict struct {
	message  string
	recorded bool
}

// shouldRecord stores a conflict message, which is empty if there is no conflict, and reports
// whether to record an event. It reports true if the message differs from the stored one. If no
// message is stored, for example after a start of the process, it reports true only if written is
// true, that is, if this process has just written the binding. Another reconcile may store the
// message before that write is handled, so written also makes shouldRecord report a stored message
// that was not recorded yet.
func (c *conflicts) shouldRecord(uid types.UID, message string, written bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := bindingConflict{}, false
	if stored, ok := c.byBinding.Get(uid); ok {
		last, known = stored.(bindingConflict)
	}
	changed := known && last.message != message
	record := changed || written && !last.recorded
	c.byBinding.Add(uid, bindingConflict{message: message, recorded: record || last.recorded && !changed})
	return record
}

// recordConflictEvent records an event on an attached binding if its dependents require different
// settings. It records no event for a binding that a policy places, because that binding gets its
// settings from the policy.
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
