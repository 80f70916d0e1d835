package binding

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// recordProgressEvents records events about applied overrides, and about a success after failures.
// It records them on the template, because users look for events there. It records no event for
// each written Work, because the status of the binding shows the result.
func (r *reconciler) recordProgressEvents(outcome *syncOutcome, recovered bool) {
	if len(outcome.overridden) > 0 {
		r.events.RecordDecision(outcome.template, policyv1alpha1.EventReasonApplyOverridePolicySucceed,
			"Overrides were applied for %s.", pluralize(len(outcome.overridden), "cluster"))
	}
	if len(outcome.overridden)+len(outcome.idleOverriders) > 0 {
		r.recordIdleOverridersEvent(outcome)
	}
	if recovered {
		r.events.RecordDecision(outcome.template, workv1alpha2.EventReasonSyncWorkSucceed,
			"All Works of binding %s are up to date again.", outcome.bound.GetName())
	}
}

// recordSuccessEvents records that all Works are written, if the component records successes as
// events.
func (r *reconciler) recordSuccessEvents(outcome *syncOutcome) {
	if len(outcome.failures) > 0 {
		return
	}
	for _, object := range []client.Object{outcome.bound, outcome.template} {
		r.events.RecordSuccess(object, workv1alpha2.EventReasonSyncWorkSucceed, "All Works of binding %s are up to date.",
			outcome.bound.GetName())
	}
}

// recordIdleOverridersEvent records an event that names the overriders without effect.
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

// recordFailureEvents records the reported failures on the binding and the template. It reports
// whether an earlier reconcile recorded failures and there are none now.
func (r *reconciler) recordFailureEvents(outcome *syncOutcome, classes failureClasses) (recovered bool) {
	recovered = r.recordEvents(outcome.bound, workv1alpha2.EventReasonSyncWorkFailed, classes.reported)
	if outcome.template != nil {
		// The events about override policies have a separate reason, so the errors of override
		// policies are not recorded a second time under this reason.
		r.recordEvents(outcome.template, workv1alpha2.EventReasonSyncWorkFailed, classes.otherErrors)
		r.recordEvents(outcome.template, policyv1alpha1.EventReasonApplyOverridePolicyFailed, classes.overrideErrors)
	}
	return recovered
}

// recordEvents records failures as one event, unless exactly these failures are recorded already.
// It reports whether an earlier reconcile recorded failures and there are none now.
func (r *reconciler) recordEvents(object client.Object, reason string, failures []error) (recovered bool) {
	if len(failures) == 0 {
		return r.events.ClearFailure(object, reason)
	}
	r.events.RecordFailure(object, reason, errors.New(summarize(failures)))
	return false
}

// summarize returns a text with each cause once, followed by all clusters with this cause.
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
