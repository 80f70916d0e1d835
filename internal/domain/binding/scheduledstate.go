package binding

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// MessageScheduled is the message of the condition Scheduled after a success.
const MessageScheduled = "Binding has been scheduled successfully."

// ScheduledState returns the value of workv1alpha2.ScheduledStateAnnotation for the binding's current
// spec: a hash of all fields except the template's resourceVersion, because a new version of the
// template that changes no other field does not affect the placement.
func ScheduledState(bound Object) string {
	spec := *bound.BindingSpec()
	spec.Resource.ResourceVersion = ""
	text, err := json.Marshal(&spec)
	if err != nil {
		return "" // a spec that was decoded from JSON can always be encoded
	}
	hash := fnv.New128a()
	_, _ = hash.Write(text) // a hash never fails to write
	return hex.EncodeToString(hash.Sum(nil))
}

// IsScheduled reports whether the scheduler selected the binding's current clusters for its current
// spec. The status shows this, or the scheduler recorded it with the clusters, and its status write is
// still pending. A failure in the status has precedence.
func IsScheduled(bound Object) bool {
	status := bound.BindingStatus()
	if conditions.HasStatus(status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse) {
		return false
	}
	return status.SchedulerObservedGeneration == bound.GetGeneration() || isStateRecorded(bound)
}

// isStateRecorded reports whether the annotation matches the spec.
func isStateRecorded(bound Object) bool {
	recorded := bound.GetAnnotations()[workv1alpha2.ScheduledStateAnnotation]
	return recorded != "" && recorded == ScheduledState(bound)
}

// ReportScheduled reports the recorded success of the scheduler in the binding's status, and returns
// whether the status changed. It does nothing in these cases, in which only the scheduler may write
// the status:
//
//   - The scheduler selected the clusters for another spec.
//   - The status reports a failure.
//   - The status must also name the affinity group, or show that a reschedule request was processed.
//
// It replaces the conditions instead of modifying them, because they may be shared with a cache.
func ReportScheduled(bound Object, now metav1.Time) (changed bool) {
	spec, status, now := bound.BindingSpec(), bound.BindingStatus(), now.Rfc3339Copy() // as the API server stores it
	if status.SchedulerObservedGeneration == bound.GetGeneration() || spec.Placement == nil || len(spec.Placement.ClusterAffinities) > 0 ||
		isReschedulePending(spec, status) || !IsScheduled(bound) {
		return false
	}
	scheduled := metav1.Condition{
		Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: workv1alpha2.BindingReasonSuccess, Message: MessageScheduled,
		ObservedGeneration: bound.GetGeneration(), LastTransitionTime: now,
	}
	if stored := conditions.Get(status.Conditions, workv1alpha2.Scheduled); stored != nil {
		scheduled.Message = stored.Message
	}
	status.Conditions = slices.Clone(status.Conditions)
	conditions.Set(&status.Conditions, scheduled)
	status.SchedulerObservedGeneration = bound.GetGeneration()
	if status.LastScheduledTime == nil {
		status.LastScheduledTime = &now
	}
	return true
}

// isReschedulePending reports whether the status does not show yet that the last reschedule request
// was processed.
func isReschedulePending(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) bool {
	return spec.RescheduleTriggeredAt != nil &&
		(status.LastScheduledTime == nil || spec.RescheduleTriggeredAt.After(status.LastScheduledTime.Time))
}
