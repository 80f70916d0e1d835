package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// blockedRetryDelay is the requeue delay of a binding that waits for a change by a user. Normally
// that change queues the binding earlier.
const blockedRetryDelay = time.Minute

// blockedError describes an obstacle that this controller cannot remove.
type blockedError struct{ reason string }

func (b *blockedError) Error() string { return b.reason }

// clusterError says why one cluster does not have its Work.
type clusterError struct {
	cluster string
	err     error
}

func (c *clusterError) Error() string { return fmt.Sprintf("cluster %q: %v", c.cluster, c.err) }
func (c *clusterError) Unwrap() error { return c.err }

// syncOutcome is the result of one reconcile of a binding.
type syncOutcome struct {
	bound binding.Object
	// template is the template on which events are recorded. It is nil if the template does not
	// exist.
	template *unstructured.Unstructured
	failures []error
	// isDecided is true if the outcome is decided for every target: a Work, a failure, or nothing
	// to render.
	isDecided bool
	// hasUnmarkedWork is true if at least one current Work has no mark that shows that it is
	// current; see work.IsMarkedCurrent.
	hasUnmarkedWork bool
	// overridden are the clusters whose record of applied overrides changed.
	overridden []string
	// idleOverriders are the overriders without effect that were recorded in this pass.
	idleOverriders []string
}

// addFailure adds an error, if it is not nil.
func (s *syncOutcome) addFailure(err error) {
	if err != nil {
		s.failures = append(s.failures, err)
	}
}

// addFailureForAll adds an error for every target.
func (s *syncOutcome) addFailureForAll(targets []workv1alpha2.TargetCluster, err error) {
	s.isDecided = true
	for _, target := range targets {
		s.addFailure(&clusterError{target.Name, err})
	}
}

// addResults adds the results of targets. It returns the names of the current Works by cluster.
func (s *syncOutcome) addResults(results []targetResult) (names map[string]string) {
	s.isDecided = true
	names = map[string]string{}
	for _, each := range results {
		if each.err != nil {
			s.addFailure(&clusterError{each.cluster, each.err})
			continue
		}
		names[each.cluster] = each.workName
		s.hasUnmarkedWork = s.hasUnmarkedWork || !each.isMarked
		if each.overridden {
			s.overridden = append(s.overridden, each.cluster)
		}
		s.idleOverriders = append(s.idleOverriders, each.idleOverriders...)
	}
	return names
}

// failureClasses groups the failures of a reconcile by the reaction that they require.
type failureClasses struct {
	// reported are the failures that the user sees. They explain why clusters do not have their
	// Works.
	reported []error
	// overrideErrors are the reported failures that the author of an override policy can resolve.
	// otherErrors are all other reported failures.
	overrideErrors, otherErrors []error
	// retried are the reported failures that may end without a change by a user.
	retried []error
	// isBusy is true if the rule for a cluster did not run. What an earlier reconcile reported then
	// stays, because the clusters without a result differ in each attempt.
	isBusy bool
	// hasOtherFailure is true if a reported failure concerns no single cluster. An example is a
	// failed deletion of Works that the binding does not need.
	hasOtherFailure bool
	// isStale is true if a cache was out of date.
	isStale bool
	// isBlocked is true if a reported failure ends only after a change by a user.
	isBlocked bool
}

// classifyFailures groups failures by the reaction that they require. Stale caches are not
// reported, and a rule that did not run (interpreter.BusyError) is only retried. Obstacles and
// override errors are reported, and the binding waits for a user. A Work that is too large is not
// retried until it changes. All other failures are reported and retried.
func classifyFailures(failures []error) failureClasses {
	var v failureClasses
	for _, err := range failures {
		var overrideError *override.RuleError
		var blocked *blockedError
		var rejected *tenancy.ForbiddenError
		if loop.IsStale(err) {
			v.isStale = true
			continue
		}
		if interpreter.IsBusy(err) {
			v.isBusy = true
			v.retried = append(v.retried, err)
			continue
		}
		v.reported = append(v.reported, err)
		if failed := new(clusterError); !errors.As(err, &failed) {
			v.hasOtherFailure = true
		}
		if errors.As(err, &overrideError) {
			v.overrideErrors = append(v.overrideErrors, err)
			v.isBlocked = true
			continue
		}
		v.otherErrors = append(v.otherErrors, err)
		if errors.As(err, &blocked) || errors.As(err, &rejected) {
			v.isBlocked = true
			continue
		}
		if tooLarge := (*sizeError)(nil); !errors.As(err, &tooLarge) {
			v.retried = append(v.retried, err)
		}
	}
	return v
}

// byCluster returns the messages of the reported failures for each cluster. Each message contains
// the name of the object.
func (f *failureClasses) byCluster(object string) map[string]string {
	var failures map[string]string
	for _, err := range f.reported {
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

// recordRendering records in the binding what its Works do not show: why clusters have no current
// Work, and which Works are current although they have no mark that shows this. In most reconciles
// there is nothing to record. If a cache was stale or a rule did not run, recordRendering records
// nothing, because the next reconcile follows at once.
func (r *reconciler) recordRendering(ctx context.Context, outcome *syncOutcome, classes failureClasses) error {
	if !outcome.isDecided || classes.isBusy || slices.ContainsFunc(outcome.failures, loop.IsStale) {
		return nil
	}
	recorded := work.WithReport(outcome.bound, work.RenderReport{
		Failures:        classes.byCluster(templateTitle(outcome.bound.BindingSpec().Resource)),
		HasUnmarkedWork: outcome.hasUnmarkedWork && !classes.hasOtherFailure,
	})
	if recorded == nil {
		return nil
	}
	if _, err := patch.Object(ctx, r.karmada, outcome.bound, recorded); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.writes.Record(client.ObjectKeyFromObject(recorded), recorded)
	return nil
}

// finishReconcile reports the outcome of a reconcile and returns the result for the queue.
func (r *reconciler) finishReconcile(ctx context.Context, outcome *syncOutcome) (reconcile.Result, error) {
	classes := classifyFailures(outcome.failures)
	if err := r.recordRendering(ctx, outcome, classes); loop.IsStale(err) {
		classes.isStale = true
	} else if err != nil {
		classes.retried = append(classes.retried, err)
	}
	recovered := false
	if !classes.isBusy {
		recovered = r.recordFailureEvents(outcome, classes)
	}
	if outcome.template != nil {
		r.recordProgressEvents(outcome, recovered)
		r.recordSuccessEvents(outcome)
	}
	switch {
	case len(classes.retried) > 0:
		return reconcile.Result{}, errors.Join(classes.retried...)
	case classes.isStale:
		return loop.StaleResult(), nil
	case classes.isBlocked:
		return reconcile.Result{RequeueAfter: blockedRetryDelay}, nil
	}
	return reconcile.Result{}, nil
}
