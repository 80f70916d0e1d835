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
	"karmada.io/karmada/internal/domain/reach"
)

const (
	// glance is when to look again at what was written elsewhere a moment ago.
	glance = 50 * time.Millisecond
	// patience is when to look again at what somebody else has to finish first.
	patience = time.Second
	// obstructed is when to look again at what a user has to clear away.
	obstructed = time.Minute
)

var (
	// errStale says that a write or a decision met something newer than what was
	// read.
	errStale = errors.New("our view is behind")
	// errEnding says that a binding has to be gone before there is a new one.
	errEnding = errors.New("it is being deleted")
)

// conclude tells a failure of a pass and says when the next one is due.
func (r *reconciler) conclude(dependent *workv1alpha2.ResourceBinding, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		r.events.Recovered(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesFailed)
	case !all(err, passing):
		r.events.Failed(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesFailed, err)
	}
	return settle(err)
}

// settle turns the outcome of a pass into what the queue has to know: who was
// behind looks again, silently, and who stands before an obstacle waits.
func settle(err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{}, nil
	case all(err, stale):
		return reconcile.Result{RequeueAfter: glance}, nil
	case all(err, passing):
		return reconcile.Result{RequeueAfter: patience}, nil
	case all(err, func(one error) bool { return passing(one) || obstructs(one) }):
		return reconcile.Result{RequeueAfter: obstructed}, nil
	}
	return reconcile.Result{}, err
}

// all reports whether a claim holds for an error, or for every one that it joins.
func all(err error, claim func(error) bool) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return claim(err)
	}
	for _, one := range joined.Unwrap() {
		if !all(one, claim) {
			return false
		}
	}
	return true
}

func stale(err error) bool {
	return errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// passing reports whether an error goes away without anybody's help.
func passing(err error) bool {
	var earlier *policy.OwnerError
	return stale(err) || errors.Is(err, errEnding) || errors.As(err, &earlier)
}

// obstructs reports whether an error lasts until a user changes something.
func obstructs(err error) bool {
	var taken *policy.CollisionError
	var refused *reach.RefusedError
	return errors.As(err, &taken) || errors.As(err, &refused)
}

// ending reports whether a create was refused because the namespace goes.
func ending(err error) bool {
	return err != nil && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// gone turns the absence of what was to be changed into a stale view.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %v", errStale, err) //nolint:errorlint // what is not found is found out by looking again
	}
	return err
}

// quarrels remembers in what the dependents of a binding differ, so that it is
// told when they begin to and not whenever they are looked at.
type quarrels struct {
	mu    sync.Mutex
	known *lru.Cache
}

// rememberedQuarrels bounds how many bindings are remembered. One that is
// forgotten is told about when it is written next.
const rememberedQuarrels = 10_000

func newQuarrels() *quarrels { return &quarrels{known: lru.New(rememberedQuarrels)} }

// noted is what the dependents of a binding differed in, and whether that was told.
type noted struct {
	message string
	told    bool
}

// news notes a message, empty for none, and reports whether it is worth telling:
// what was there when we first looked is not, unless we have just written. Whoever
// writes may come here after another pass that has already seen what was written.
func (q *quarrels) news(of types.UID, message string, written bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, known := noted{}, false
	if stored, ok := q.known.Get(of); ok {
		last, known = stored.(noted)
	}
	changed := known && last.message != message
	tell := changed || written && !last.told
	q.known.Add(of, noted{message: message, told: tell || last.told && !changed})
	return tell
}

// quarrel tells on an attached binding that its dependents want different things
// of it, if that is for them to say.
func (r *reconciler) quarrel(attached binding.Object, dependents []*workv1alpha2.ResourceBinding, written bool) {
	err := dependency.Disagreement(attached.BindingSpec().Resource, dependents)
	if attached.BindingSpec().Placement != nil {
		err = nil
	}
	message := ""
	if err != nil {
		message = err.Error()
	}
	if !r.quarrels.news(attached.GetUID(), message, written) {
		return
	}
	if err == nil {
		r.events.Recovered(attached, workv1alpha2.EventReasonDependencyPolicyConflict)
		return
	}
	r.events.Failed(attached, workv1alpha2.EventReasonDependencyPolicyConflict, err)
}
