package execution

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// recordSyncEvents records events for failures, and for the success that ends failures. It records
// no event for a success without earlier failures, because the conditions show that success.
func (c *controller) recordSyncEvents(karmadaWork *workv1alpha1.Work, failures []error) {
	cluster, _ := work.ClusterOf(karmadaWork.Namespace)
	if len(failures) > 0 {
		c.recordFailureEvents(karmadaWork, workv1alpha1.EventReasonSyncFailed, errors.Join(failures...))
		return
	}
	c.clearFailureEvents(karmadaWork, workv1alpha1.EventReasonSyncFailed)
	if conditions.HasStatus(c.reports.Latest(karmadaWork).Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse) {
		c.events.RecordDecision(karmadaWork, workv1alpha1.EventReasonSyncSucceed, "Applied to cluster %s after earlier failures", cluster)
	}
	c.events.RecordSuccess(karmadaWork, workv1alpha1.EventReasonSyncSucceed, "Applied to cluster %s", cluster)
}

// recordFailureEvents records a failure on a Work and on the templates of its manifests. The
// message of the error contains the name of the cluster.
func (c *controller) recordFailureEvents(karmadaWork *workv1alpha1.Work, reason string, err error) {
	c.events.RecordFailure(karmadaWork, reason, err)
	if c.options.Mode == clusterv1alpha1.Pull {
		// An agent records no event on a template, because it writes no events in the namespaces of
		// users. The status of the binding reports the failure.
		return
	}
	cluster, _ := work.ClusterOf(karmadaWork.Namespace)
	forEachTemplate(karmadaWork, func(template *unstructured.Unstructured) {
		c.events.RecordClusterFailure(cluster, template, reason, err)
	})
}

// clearFailureEvents removes the stored failure for the Work and its templates, so that the next
// failure is recorded again.
func (c *controller) clearFailureEvents(karmadaWork *workv1alpha1.Work, reason string) {
	if !c.events.ClearFailure(karmadaWork, reason) || c.options.Mode == clusterv1alpha1.Pull {
		return
	}
	cluster, _ := work.ClusterOf(karmadaWork.Namespace)
	forEachTemplate(karmadaWork, func(template *unstructured.Unstructured) { c.events.ClearClusterFailure(cluster, template, reason) })
}

// forEachTemplate calls visit for the template of each manifest of a Work.
func forEachTemplate(karmadaWork *workv1alpha1.Work, visit func(template *unstructured.Unstructured)) {
	for _, raw := range karmadaWork.Spec.Workload.Manifests {
		manifest, decodeErr := work.DecodeManifestMetadata(raw)
		if decodeErr != nil {
			continue
		}
		if template := templateOf(manifest); template != nil {
			visit(template)
		}
	}
}

// recordDispatchingEvent records an event when a user suspended or resumed the delivery. It records
// no event for a new Work that is not suspended.
func (c *controller) recordDispatchingEvent(karmadaWork *workv1alpha1.Work) {
	desired := work.DispatchingCondition(karmadaWork)
	present := conditions.Get(c.reports.Latest(karmadaWork).Status.Conditions, desired.Type)
	if present == nil && desired.Status == metav1.ConditionTrue || present != nil && present.Status == desired.Status {
		return
	}
	if c.tracker.recordDispatching(karmadaWork, string(desired.Status)) {
		c.events.RecordDecision(karmadaWork, workv1alpha1.EventReasonWorkDispatching, "%s", desired.Message)
	}
}

// reportDriftConflicts reports drift conflicts in a condition and an event. It also reports when
// all drift conflicts have ended.
func (c *controller) reportDriftConflicts(d *delivery) {
	if len(d.driftConflicts) == 0 {
		c.clearFailureEvents(d.work, workv1alpha1.EventReasonDriftConflict)
		if conditions.HasStatus(c.reports.Latest(d.work).Status.Conditions, workv1alpha1.WorkDriftConflict, metav1.ConditionTrue) {
			c.reportConditions(d.work, loop.StatusSettled, work.DriftConflictCondition(d.work, nil))
		}
		return
	}
	condition := work.DriftConflictCondition(d.work, d.driftConflicts)
	c.reportConditions(d.work, loop.StatusFailed, condition)
	c.recordFailureEvents(d.work, workv1alpha1.EventReasonDriftConflict, errors.New(condition.Message))
}
