package binding

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// MessageScheduled is the message of the condition Scheduled after a success.
const MessageScheduled = "Binding has been scheduled successfully."

// RecordScheduled records in workv1alpha2.ScheduledStateAnnotation that the scheduler selected the
// binding's clusters for its current spec at the given time. The scheduler calls it in the same write as
// the clusters.
func RecordScheduled(bound Object, at time.Time) {
	SetAnnotation(bound, workv1alpha2.ScheduledStateAnnotation, hashSpec(bound)+" "+at.UTC().Format(time.RFC3339))
}

// RemovePlacement removes the clusters and the scheduler's annotations from a binding that is not created
// yet. It modifies the annotations.
func RemovePlacement(bound Object) {
	bound.BindingSpec().Clusters = nil
	for _, name := range []string{
		policyv1alpha1.AppliedPlacementAnnotation, workv1alpha2.ClustersWithoutAPIAnnotation, workv1alpha2.ScheduledStateAnnotation,
	} {
		delete(bound.GetAnnotations(), name)
	}
}

// recordedTime returns the time that RecordScheduled recorded for the binding's current spec.
func recordedTime(bound Object) (at time.Time, isRecorded bool) {
	hash, _, _ := strings.Cut(bound.GetAnnotations()[workv1alpha2.ScheduledStateAnnotation], " ")
	if hash != hashSpec(bound) {
		return time.Time{}, false
	}
	return parseRecordedTime(bound)
}

// parseRecordedTime returns the time that RecordScheduled recorded for the binding's current or an earlier spec.
func parseRecordedTime(bound metav1.Object) (at time.Time, isRecorded bool) {
	_, text, _ := strings.Cut(bound.GetAnnotations()[workv1alpha2.ScheduledStateAnnotation], " ")
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// LastScheduledTime returns the time of the last successful scheduling: that in the status or, if the status
// does not show the first scheduling yet, the time that RecordScheduled recorded. It returns nil for a binding
// that was never scheduled.
func LastScheduledTime(bound metav1.Object, status *workv1alpha2.ResourceBindingStatus) *metav1.Time {
	if at, isRecorded := parseRecordedTime(bound); isRecorded && status.LastScheduledTime == nil {
		return new(metav1.NewTime(at))
	}
	return status.LastScheduledTime
}

// hashSpec returns the spec's hash without the template's resourceVersion, because a new template version
// that changes no other field does not affect the placement.
func hashSpec(bound Object) string {
	spec := *bound.BindingSpec()
	spec.Resource.ResourceVersion = ""
	text, _ := json.Marshal(&spec) // a spec that was decoded from JSON can always be encoded
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
	if status.SchedulerObservedGeneration == bound.GetGeneration() {
		return true
	}
	_, isRecorded := recordedTime(bound)
	return isRecorded
}

// ReportScheduled reports the recorded success of the scheduler in the binding's status, and returns
// whether the status changed. It does nothing in these cases, in which only the scheduler may write
// the status:
//
//   - The scheduler selected the clusters for another spec.
//   - The status reports a failure.
//   - The name of the affinity group in the status must change, or the status must show that a reschedule
//     request was processed.
//
// It replaces the conditions instead of modifying them, because they may be shared with a cache.
func ReportScheduled(bound Object, now metav1.Time) (changed bool) {
	spec, status, now := bound.BindingSpec(), bound.BindingStatus(), now.Rfc3339Copy() // as the API server stores it
	if status.SchedulerObservedGeneration == bound.GetGeneration() || spec.Placement == nil || isReschedulePending(spec, status) ||
		len(spec.Placement.ClusterAffinities) > 0 || status.SchedulerObservedAffinityName != "" {
		return false
	}
	selectedAt, isRecorded := recordedTime(bound)
	stored := conditions.Get(status.Conditions, workv1alpha2.Scheduled)
	if !isRecorded || stored != nil && stored.Status == metav1.ConditionFalse {
		return false
	}
	scheduled := metav1.Condition{
		Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: workv1alpha2.BindingReasonSuccess, Message: MessageScheduled,
		ObservedGeneration: bound.GetGeneration(), LastTransitionTime: now,
	}
	if stored != nil {
		scheduled.Message = stored.Message
	}
	status.Conditions = slices.Clone(status.Conditions)
	conditions.Set(&status.Conditions, scheduled)
	status.SchedulerObservedGeneration = bound.GetGeneration()
	if status.LastScheduledTime == nil || selectedAt.After(status.LastScheduledTime.Time) {
		status.LastScheduledTime = new(metav1.NewTime(selectedAt))
	}
	return true
}

// isReschedulePending reports whether the status does not show yet that the last reschedule request
// was processed.
func isReschedulePending(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) bool {
	return spec.RescheduleTriggeredAt != nil &&
		(status.LastScheduledTime == nil || spec.RescheduleTriggeredAt.After(status.LastScheduledTime.Time))
}
