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
	"karmada.io/karmada/internal/domain/tenancy"
)

// blockedRetryDelay is the requeue delay of a binding that waits for a change by a user. Such
// a change normally queues the binding itself.
const blockedRetryDelay = time.Minute

// errStale is returned when a decision must wait for the cache.
var errStale = errors.New("the cache is out of date")

// blockedError describes an obstacle that this controller cannot remove.
type blockedError struct{ reason string }

func (e *blockedError) Error() string { return e.reason }

// clusterError is the cause for which one cluster does not have its Work.
type clusterError struct {
	cluster string
	err     error
}

func (e *clusterError) Error() string { return fmt.Sprintf("cluster %q: %v", e.cluster, e.err) }
func (e *clusterError) Unwrap() error { return e.err }

// syncOutcome is the result of one reconcile of a binding.
type syncOutcome struct {
	bound binding.Object
	// template is nil when no template exists to record events on.
	template *unstructured.Unstructured
	failures []error
	// overridden are the clusters whose record of applied overrides changed.
	overridden []string
	// idleOverriders are the overriders without effect in any of these clusters.
	idleOverriders []string
}

// addFailure adds an error, if it is not nil.
func (p *syncOutcome) addFailure(err error) {
	if err != nil {
		p.failures = append(p.failures, err)
	}
}

// addFailureForAll adds an error for every target.
func (p *syncOutcome) addFailureForAll(targets []workv1alpha2.TargetCluster, err error) {
	for _, target := range targets {
		p.addFailure(&clusterError{target.Name, err})
	}
}

// addResults adds the results of targets. It returns the name of the Work of each cluster that
// has a current one.
func (p *syncOutcome) addResults(results []targetResult) (names map[string]string) {
	names = map[string]string{}
	for _, each := range results {
		if each.err != nil {
			p.addFailure(&clusterError{each.cluster, each.err})
			continue
		}
		names[each.cluster] = each.workName
		if each.overridden {
			p.overridden = append(p.overridden, each.cluster)
			p.idleOverriders = append(p.idleOverriders, each.idleOverriders...)
		}
	}
	return names
}

// failureClasses holds the failures of a reconcile by the required reaction.
type failureClasses struct {
	// reported are the failures that the user sees: the causes for which clusters do not have
	// their Works.
	reported []error
	// overrideErrors are the reported failures that the author of an override policy can
	// resolve. otherErrors are the rest.
	overrideErrors, otherErrors []error
	// retried are the reported failures that may disappear with time.
	retried []error
	// requeueAfter is the time until the next reconcile; zero for none. With retried failures,
	// the queue's backoff is used instead.
	requeueAfter time.Duration
}

// classifyFailures sorts failures. Stale caches are not reported. Obstacles and override
// errors are reported and wait for a user. All others are reported and retried.
func classifyFailures(failures []error) failureClasses {
	var v failureClasses
	for _, err := range failures {
		var overrideError *override.RuleError
		var blocked *blockedError
		var rejected *tenancy.ForbiddenError
		if isCacheStale(err) {
			v.requeueWithin(staleRetryDelay)
			continue
		}
		v.reported = append(v.reported, err)
		if errors.As(err, &overrideError) {
			v.overrideErrors = append(v.overrideErrors, err)
			v.requeueWithin(blockedRetryDelay)
			continue
		}
		v.otherErrors = append(v.otherErrors, err)
		if errors.As(err, &blocked) || errors.As(err, &rejected) {
			v.requeueWithin(blockedRetryDelay)
			continue
		}
		v.retried = append(v.retried, err)
	}
	return v
}

func (v *failureClasses) requeueWithin(delay time.Duration) {
	if v.requeueAfter == 0 || delay < v.requeueAfter {
		v.requeueAfter = delay
	}
}

// byCluster returns the messages of the reported failures by cluster, with the name of the
// object.
func (v *failureClasses) byCluster(object string) map[string]string {
	var failures map[string]string
	for _, err := range v.reported {
		var failed *clusterError
		if !errors.As(err, &failed) {
			continue
		}
		if failures == nil {
			failures = map[string]string{}
		}
		failures[failed.cluster] = fmt.Sprintf("%s: %v", object, failed.err)
	}
	return failures
}

// isCacheStale reports whether an error means that the cache was out of date.
func isCacheStale(err error) bool {
	return errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// finishReconcile reports the outcome of a reconcile and returns the result for the queue.
func (r *reconciler) finishReconcile(outcome *syncOutcome) (reconcile.Result, error) {
	classes := classifyFailures(outcome.failures)
	r.failureReporter.set(outcome.bound, classes.byCluster(templateTitle(outcome.bound.BindingSpec().Resource)))
	r.failureReporter.concludeGeneration(outcome.bound, outcome.failures)
	recovered := r.recordEvents(outcome.bound, workv1alpha2.EventReasonSyncWorkFailed, classes.reported)
	if outcome.template != nil {
		// The author of an override policy finds its errors under their own reason, and only
		// there.
		r.recordEvents(outcome.template, workv1alpha2.EventReasonSyncWorkFailed, classes.otherErrors)
		r.recordEvents(outcome.template, policyv1alpha1.EventReasonApplyOverridePolicyFailed, classes.overrideErrors)
		r.recordProgressEvents(outcome, recovered)
		r.recordSuccessEvents(outcome)
	}
	if len(classes.retried) > 0 {
		return reconcile.Result{}, errors.Join(classes.retried...)
	}
	return reconcile.Result{RequeueAfter: classes.requeueAfter}, nil
}
