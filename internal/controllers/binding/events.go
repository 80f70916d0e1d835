package binding

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// Failures receives, by cluster, the causes for which the clusters of a binding do not have
// their Works; none when all have. A missing Work cannot report its cause itself.
type Failures interface {
	Set(binding types.UID, failures map[string]string) (changed bool)
	// SetRendered records that all Works of a generation are written, or have failed.
	SetRendered(bindingKey types.NamespacedName, uid types.UID, generation int64)
	// DeleteRendered removes the records of a deleted binding.
	DeleteRendered(bindingKey types.NamespacedName)
}

// failureReporter reports failures, and removes them when their binding is deleted. Only the
// name of the binding is known then.
type failureReporter struct {
	failures Failures

	mu     sync.Mutex
	failed map[types.NamespacedName]types.UID
}

func newFailureReporter(failures Failures) *failureReporter {
	return &failureReporter{failures: failures, failed: map[types.NamespacedName]types.UID{}}
}

func (f *failureReporter) set(bound binding.Object, failures map[string]string) {
	key := client.ObjectKeyFromObject(bound)
	if f.uidOf(key) != bound.GetUID() {
		f.delete(key)
	}
	f.mu.Lock()
	if len(failures) > 0 {
		f.failed[key] = bound.GetUID()
	} else {
		delete(f.failed, key)
	}
	f.mu.Unlock()
	f.failures.Set(bound.GetUID(), failures)
}

// concludeGeneration reports the generation of the binding as concluded, unless a failure
// without a cluster or a stale cache prevented decisions.
func (f *failureReporter) concludeGeneration(bound binding.Object, failures []error) {
	for _, err := range failures {
		var failed *clusterError
		if isCacheStale(err) || !errors.As(err, &failed) {
			return
		}
	}
	f.failures.SetRendered(client.ObjectKeyFromObject(bound), bound.GetUID(), bound.GetGeneration())
}

func (f *failureReporter) uidOf(key types.NamespacedName) types.UID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed[key]
}

// delete removes the reports of a deleted binding.
func (f *failureReporter) delete(key types.NamespacedName) {
	f.failures.DeleteRendered(key)
	uid := f.uidOf(key)
	if uid == "" {
		return
	}
	f.mu.Lock()
	delete(f.failed, key)
	f.mu.Unlock()
	f.failures.Set(uid, nil)
}

// recordProgressEvents records on the template, which users look at, the applied overrides,
// and a success after failures. Writing Works as scheduled is not recorded, because the status
// shows it.
func (r *reconciler) recordProgressEvents(outcome *syncOutcome, recovered bool) {
	if len(outcome.overridden) > 0 {
		r.events.RecordDecision(outcome.template, policyv1alpha1.EventReasonApplyOverridePolicySucceed,
			"Overrides were applied for %s.", pluralize(len(outcome.overridden), "cluster"))
		r.recordIdleOverridersEvent(outcome)
	}
	if recovered {
		r.events.RecordDecision(outcome.template, workv1alpha2.EventReasonSyncWorkSucceed,
			"All Works of binding %s are up to date again.", outcome.bound.GetName())
	}
}

// recordSuccessEvents records that all Works are written, if events of successes are enabled.
func (r *reconciler) recordSuccessEvents(outcome *syncOutcome) {
	if len(outcome.failures) > 0 {
		return
	}
	for _, object := range []client.Object{outcome.bound, outcome.template} {
		r.events.RecordSuccess(object, workv1alpha2.EventReasonSyncWorkSucceed, "All Works of binding %s are up to date.", outcome.bound.GetName())
	}
}

// recordIdleOverridersEvent records the overriders without effect.
func (r *reconciler) recordIdleOverridersEvent(outcome *syncOutcome) {
	if len(outcome.idleOverriders) == 0 {
		r.events.ClearFailure(outcome.template, policyv1alpha1.EventReasonOverrideWithoutEffect)
		return
	}
	slices.Sort(outcome.idleOverriders)
	r.events.RecordFailure(outcome.template, policyv1alpha1.EventReasonOverrideWithoutEffect,
		errors.New(conditions.LimitMessage(strings.Join(slices.Compact(outcome.idleOverriders), "\n"))))
}

func pluralize(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}

// recordEvents records failures as an event, unless the same event was recorded before. It
// reports whether there are no failures after there were some.
func (r *reconciler) recordEvents(object client.Object, reason string, failures []error) (recovered bool) {
	if len(failures) == 0 {
		return r.events.ClearFailure(object, reason)
	}
	r.events.RecordFailure(object, reason, errors.New(summarize(failures)))
	return false
}

// summarize returns each cause once, with all its clusters.
func summarize(failures []error) string {
	var causes []string
	clusters := map[string][]string{}
	for _, err := range failures {
		cause, failed := err.Error(), &clusterError{}
		if errors.As(err, &failed) {
			cause = failed.err.Error()
			clusters[cause] = append(clusters[cause], failed.cluster)
		}
		if len(clusters[cause]) < 2 {
			causes = append(causes, cause)
		}
	}
	lines := make([]string, len(causes))
	for i, cause := range causes {
		switch names := clusters[cause]; len(names) {
		case 0:
			lines[i] = cause
		case 1:
			lines[i] = fmt.Sprintf("cluster %s: %s", names[0], cause)
		default:
			lines[i] = fmt.Sprintf("clusters %s: %s", strings.Join(names, ", "), cause)
		}
	}
	return strings.Join(lines, "\n")
}
