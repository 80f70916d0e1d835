package binding

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
)

// waitRetry is how long to leave alone what only a change by somebody else can
// mend. Such changes wake the binding themselves, as a rule.
const waitRetry = time.Minute

// errLag tells that a decision has to wait for the cache.
var errLag = errors.New("the cache is behind what is stored")

// waitError says that something stands in the way that is not ours to remove.
type waitError struct{ reason string }

func (e *waitError) Error() string { return e.reason }

// verdict is what the failures of a pass mean.
type verdict struct {
	// told are for the user: what keeps a cluster from having its Work.
	told []error
	// mistakes are those of told that the author of an override policy can mend.
	mistakes []error
	// retried are those of told that go away with time, perhaps.
	retried []error
	// after is when to look again, zero for never. With retried the queue decides.
	after time.Duration
}

// judge sorts failures: views that lag behind are nobody's concern, obstacles and
// mistakes are told and left to those who can mend them, the rest is told and
// retried.
func judge(failures []error) verdict {
	var v verdict
	for _, err := range failures {
		var mistake *override.RuleError
		var obstacle *waitError
		switch {
		case lagging(err):
			v.lookAfter(lagDelay)
			continue
		case errors.As(err, &mistake):
			v.mistakes = append(v.mistakes, err)
			v.lookAfter(waitRetry)
		case errors.As(err, &obstacle):
			v.lookAfter(waitRetry)
		default:
			v.retried = append(v.retried, err)
		}
		v.told = append(v.told, err)
	}
	return v
}

func (v *verdict) lookAfter(delay time.Duration) {
	if v.after == 0 || delay < v.after {
		v.after = delay
	}
}

// lagging tells that a write was refused because it came from an old view.
func lagging(err error) bool {
	return errors.Is(err, errLag) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// conclude tells of the failures of a pass and says when the next one is due. The
// template may be nil.
func (r *reconciler) conclude(bound binding.Object, template *unstructured.Unstructured, failures []error) (reconcile.Result, error) {
	v := judge(failures)
	r.tell(bound, workv1alpha2.EventReasonSyncWorkFailed, v.told)
	if template != nil {
		r.tell(template, workv1alpha2.EventReasonSyncWorkFailed, v.told)
		r.tell(template, policyv1alpha1.EventReasonApplyOverridePolicyFailed, v.mistakes)
	}
	if len(v.retried) > 0 {
		return reconcile.Result{}, errors.Join(v.retried...)
	}
	return reconcile.Result{RequeueAfter: v.after}, nil
}

func (r *reconciler) tell(object client.Object, reason string, failures []error) {
	if len(failures) == 0 {
		r.events.Recovered(object, reason)
		return
	}
	r.events.Failed(object, reason, errors.Join(failures...))
}
