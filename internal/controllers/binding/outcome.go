package binding

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/reach"
)

// waitRetry is how long to leave alone what only a change by somebody else can
// mend. Such changes wake the binding themselves, as a rule.
const waitRetry = time.Minute

// errLag tells that a decision has to wait for the cache.
var errLag = errors.New("the cache is behind what is stored")

// waitError says that something stands in the way that is not ours to remove.
type waitError struct{ reason string }

func (e *waitError) Error() string { return e.reason }

// clusterError says what keeps one cluster from having its Work.
type clusterError struct {
	cluster string
	err     error
}

func (e *clusterError) Error() string { return fmt.Sprintf("cluster %q: %v", e.cluster, e.err) }
func (e *clusterError) Unwrap() error { return e.err }

// pass is what one look at a binding came to.
type pass struct {
	bound binding.Object
	// template is nil when there is none to tell anything about.
	template *unstructured.Unstructured
	failures []error
	// overridden are the clusters for which overrides were applied otherwise than
	// before.
	overridden []string
	// idle are the overriders that found nothing to change in any of them.
	idle []string
}

// fail adds a failure, if it is one.
func (p *pass) fail(err error) {
	if err != nil {
		p.failures = append(p.failures, err)
	}
}

// failAll adds a failure that keeps every target from having its Work.
func (p *pass) failAll(targets []workv1alpha2.TargetCluster, err error) {
	for _, target := range targets {
		p.fail(&clusterError{target.Name, err})
	}
}

// count adds what became of targets. It returns how the Work of each cluster is
// called, for those that have the right one.
func (p *pass) count(results []result) (names map[string]string) {
	names = map[string]string{}
	for _, each := range results {
		if each.err != nil {
			p.fail(&clusterError{each.cluster, each.err})
			continue
		}
		names[each.cluster] = each.work
		if each.overridden {
			p.overridden = append(p.overridden, each.cluster)
			p.idle = append(p.idle, each.idle...)
		}
	}
	return names
}

// verdict is what the failures of a pass mean.
type verdict struct {
	// told are for the user: what keeps a cluster from having its Work.
	told []error
	// mistakes are those of told that the author of an override policy can mend,
	// others the rest.
	mistakes, others []error
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
		var refusal *reach.RefusedError
		if lagging(err) {
			v.lookAfter(lagDelay)
			continue
		}
		v.told = append(v.told, err)
		if errors.As(err, &mistake) {
			v.mistakes = append(v.mistakes, err)
			v.lookAfter(waitRetry)
			continue
		}
		v.others = append(v.others, err)
		if errors.As(err, &obstacle) || errors.As(err, &refusal) {
			v.lookAfter(waitRetry)
			continue
		}
		v.retried = append(v.retried, err)
	}
	return v
}

func (v *verdict) lookAfter(delay time.Duration) {
	if v.after == 0 || delay < v.after {
		v.after = delay
	}
}

// byCluster are the failures to tell of each cluster, with the object that they
// are about.
func (v *verdict) byCluster(object string) map[string]string {
	var failures map[string]string
	for _, err := range v.told {
		var of *clusterError
		if !errors.As(err, &of) {
			continue
		}
		if failures == nil {
			failures = map[string]string{}
		}
		failures[of.cluster] = fmt.Sprintf("%s: %v", object, of.err)
	}
	return failures
}

// lagging tells that a write was refused because it came from an old view.
func lagging(err error) bool {
	return errors.Is(err, errLag) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// conclude tells what a pass came to and says when the next one is due.
func (r *reconciler) conclude(done *pass) (reconcile.Result, error) {
	v := judge(done.failures)
	r.failing.set(done.bound, v.byCluster(reference(done.bound.BindingSpec().Resource)))
	r.failing.conclude(done.bound, done.failures)
	recovered := r.tell(done.bound, workv1alpha2.EventReasonSyncWorkFailed, v.told)
	if done.template != nil {
		// Who wrote the override finds the mistake under its own reason, and only there.
		r.tell(done.template, workv1alpha2.EventReasonSyncWorkFailed, v.others)
		r.tell(done.template, policyv1alpha1.EventReasonApplyOverridePolicyFailed, v.mistakes)
		r.tellProgress(done, recovered)
		r.tellSuccess(done)
	}
	if len(v.retried) > 0 {
		return reconcile.Result{}, errors.Join(v.retried...)
	}
	return reconcile.Result{RequeueAfter: v.after}, nil
}
