package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// retryMode determines when a binding is retried if no event enqueues it earlier.
type retryMode int

const (
	// retryNever means that the binding waits for an event, or needs no retry.
	retryNever retryMode = iota
	// retryAfterConflict retries soon, because the binding or a reservation changed during the pass.
	retryAfterConflict
	// retryWithBackoff retries with exponential backoff.
	retryWithBackoff
	// retryWhenCapacity retries when a cluster reports more capacity.
	retryWhenCapacity
)

// outcome is the result of a pass.
type outcome struct {
	// err is the reason why the binding is not scheduled, or nil.
	err error
	// reason and message are the new values of the Scheduled condition. An empty reason leaves the
	// condition unchanged.
	reason, message string
	retry           retryMode
	// affinityGroup is the name of the affinity group in use.
	affinityGroup string
	// failedGroups are the affinity groups for which scheduling failed.
	failedGroups []placement.GroupFailure
	// failedEstimators holds the errors of estimators, by cluster name.
	failedEstimators map[string]string
	// isProcessed is true if this pass decided about the binding's generation: it selected clusters,
	// or found that no cluster fits.
	isProcessed bool
	// isPlaced is true if this pass selected clusters successfully, even if they are the same as
	// before.
	isPlaced bool
}

// desiredBinding converts the result of placement.Schedule to the desired binding, without its
// status, and to the outcome to report. A different order of the targets is not a change. The targets
// can change even if scheduling failed, because terminating clusters are always removed.
func desiredBinding(p pass, result placement.Result, err error) (binding.Object, outcome) {
	stored, desired := p.stored, withTargets(p, result)
	out := newOutcome(err)
	out.affinityGroup, out.failedGroups, out.isPlaced, out.isProcessed = result.AffinityName, result.FailedGroups, err == nil, true
	if err != nil && len(out.failedGroups) > 1 {
		out.message = withSentence(out.message, placement.DescribeOtherGroups(out.failedGroups))
	}
	var fit *placement.FitError
	switch {
	case err == nil:
	case !errors.As(err, &fit):
		return desired, out.withShortfall(desired)
	case fit.KeepsPrevious && len(result.Clusters) > 0:
		out.message += " The previous placement is kept."
		return desired, out.withShortfall(desired)
	case fit.KeepsPrevious:
		return desired, out
	}
	applied, encodingErr := placement.AppliedPlacement(stored.BindingSpec().Placement)
	if encodingErr != nil {
		return stored, newOutcome(encodingErr)
	}
	if appliedPlacement(stored) != applied {
		binding.SetAnnotation(desired, policyv1alpha1.AppliedPlacementAnnotation, applied)
	}
	placement.RecordClustersWithoutAPI(desired, result.ClustersWithoutAPI)
	return desired, out
}

// withTargets returns a copy of the pass's binding with the result's targets. Clusters that a changed
// placement no longer selects lose their copies immediately. Other clusters keep them until the
// replacement is healthy.
func withTargets(p pass, result placement.Result) binding.Object {
	desired := binding.ShallowCopy(p.stored)
	spec := desired.BindingSpec()
	before := spec.Clusters
	if haveSameTargets(before, result.Clusters) {
		return desired
	}
	leavesImmediately := func(name string) bool {
		cluster := p.snapshot.find(name)
		return p.snapshot.isTerminating(name) || result.PlacementChanged && cluster != nil && !clusteraffinity.Selects(spec.Placement, cluster)
	}
	failover.Move(spec, slices.Clip(result.Clusters), leavesImmediately, p.started)
	binding.RecordDepartures(desired, departedClusters(p, before, desired, result.PlacementChanged), p.started)
	return desired
}

// departedClusters returns the clusters that lose their copies immediately because a user changed the
// placement or the replicas. It leaves out clusters that no longer match because the Cluster changed.
func departedClusters(p pass, before []workv1alpha2.TargetCluster, desired binding.Object, placementChanged bool) []string {
	expected := binding.ExpectedClusters(desired.BindingSpec())
	var departed []string
	for _, target := range before {
		cluster := p.snapshot.find(target.Name)
		if expected.Has(target.Name) || cluster == nil || cluster.DeletionTimestamp != nil ||
			!placementChanged && guard.IsUnmatched(cluster, desired.BindingSpec(), desired.BindingStatus()) {
			continue
		}
		departed = append(departed, target.Name)
	}
	return departed
}

// newOutcome returns the outcome of placement.Schedule, which returned err or succeeded.
func newOutcome(err error) outcome {
	out := outcome{err: err, reason: placement.Reason(err)}
	if err == nil {
		out.message = binding.MessageScheduled
		return out
	}
	out.message = err.Error()
	switch out.reason {
	case workv1alpha2.BindingReasonNoClusterFit:
		// A change of a cluster enqueues the binding again, so no retry is needed.
	case workv1alpha2.BindingReasonUnschedulable:
		out.retry = retryWhenCapacity
	default:
		out.retry = retryWithBackoff
	}
	return out
}

// failedOutcome returns the outcome for a binding that could not be processed because of err.
func failedOutcome(stored binding.Object, err error) outcome {
	out := newOutcome(err)
	out.affinityGroup = stored.BindingStatus().SchedulerObservedAffinityName
	return out
}

// rejected returns the outcome that replaces out after the API server rejected the write with err.
func (out outcome) rejected(stored binding.Object, err error) outcome {
	r := outcome{
		err: err, reason: workv1alpha2.BindingReasonSchedulerError, message: err.Error(), retry: retryWithBackoff,
		affinityGroup: stored.BindingStatus().SchedulerObservedAffinityName, failedGroups: out.failedGroups,
	}
	switch {
	case apierrors.IsConflict(err):
		r.retry = retryAfterConflict
	case apierrors.IsNotFound(err):
		r.retry = retryNever
	case loop.IsNamespaceTerminating(err):
		r.retry = retryNever
	case quota.IsExceeded(err):
		r.reason = workv1alpha2.BindingReasonQuotaExceeded
	}
	if out.reason == workv1alpha2.BindingReasonNoClusterFit {
		r.reason = out.reason
		r.err = errors.Join(out.err, err)
		r.message = fmt.Sprintf("%s; %s", out.message, err)
	}
	return r
}

// unchangedOutcome returns the outcome for a binding whose targets do not change. It reports a success,
// but does not overwrite a failure of the current generation, unless its reason is
// SchedulerNotReporting. A failed binding without targets is never reported as scheduled.
func unchangedOutcome(stored binding.Object) outcome {
	out := newOutcome(nil)
	out.affinityGroup = stored.BindingStatus().SchedulerObservedAffinityName
	condition := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
	if condition != nil && condition.Status == metav1.ConditionFalse &&
		(lacksTargets(stored, condition.Reason) || condition.ObservedGeneration == stored.GetGeneration()) &&
		condition.Reason != workv1alpha2.BindingReasonSchedulerNotReporting {
		out.reason, out.message = "", ""
	}
	return out
}

// lacksTargets reports whether a binding that failed for the given reason has no targets yet. A binding that a
// quota refused and that needs no targets any more, because it was scaled to 0, does not lack them.
func lacksTargets(stored binding.Object, reason string) bool {
	return len(stored.BindingSpec().Clusters) == 0 && reason != workv1alpha2.BindingReasonQuotaExceeded
}

// withShortfall adds the number of unassigned replicas to the message if the binding has targets.
func (out outcome) withShortfall(desired binding.Object) outcome {
	if len(desired.BindingSpec().Clusters) > 0 {
		out.message = withSentence(out.message, placement.DescribeShortfall(desired.BindingSpec()))
	}
	return out
}

// withLimits adds a sentence about limited capacity to the message of a failure that a lack of
// capacity may have caused.
func (out outcome) withLimits(sentence string) outcome {
	if out.err != nil && out.reason != workv1alpha2.BindingReasonNoClusterFit {
		out.message = withSentence(out.message, sentence)
	}
	return out
}

// withUnknownClusters adds the clusters that the placement names but that do not exist to the message.
// They may explain a failure, or why fewer clusters than expected are used.
func (out outcome) withUnknownClusters(stored binding.Object, find placement.ClusterLookup) outcome {
	if out.message != "" {
		out.message = withSentence(out.message,
			placement.DescribeUnknownClusters(placement.UnknownClusters(stored.BindingSpec().Placement, out.affinityGroup, out.err != nil, find)))
	}
	return out
}

// withFailedEstimators adds the clusters whose estimators failed to the message. If nothing else in
// the condition changes, a success keeps the stored note, so that an estimator that fails only
// sometimes causes no writes. A pass that does not schedule the binding also keeps the note.
func (out outcome) withFailedEstimators(stored binding.Object) outcome {
	if out.message == "" {
		return out
	}
	condition := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
	keepsNote := out.err == nil && condition != nil && condition.Status == metav1.ConditionTrue &&
		(!out.isPlaced || condition.ObservedGeneration == stored.GetGeneration()) && isSameExceptNote(condition.Message, out.message)
	if keepsNote {
		out.message = condition.Message
	} else {
		out.message = withEstimatorNote(out.message, out.failedEstimators)
	}
	return out
}

// withSentence appends the sentence, which may be empty, to the message.
func withSentence(message, sentence string) string {
	switch {
	case sentence == "":
		return message
	case strings.HasSuffix(message, "."):
		return message + " " + sentence
	default:
		return message + ". " + sentence
	}
}

// isConditionOutdated reports whether an unchanged binding's condition Scheduled has an outdated
// message, because clusters that its placement names were created or deleted.
func isConditionOutdated(stored binding.Object, find placement.ClusterLookup) bool {
	condition := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return false
	}
	return !isSameExceptNote(condition.Message, unchangedOutcome(stored).withUnknownClusters(stored, find).message)
}

// decide returns the decision of placement.Decide. If the binding needs no action but its condition is
// outdated, the action becomes ActionObserve, so that the condition is written again.
func decide(stored binding.Object, find placement.ClusterLookup, features placement.Features) (placement.Decision, error) {
	decision, err := placement.Decide(stored, stored.BindingSpec(), stored.BindingStatus(), find, features)
	if err == nil && decision.Action == placement.ActionNone && isConditionOutdated(stored, find) {
		return placement.Decision{Action: placement.ActionObserve, Reason: "the condition names outdated clusters"}, nil
	}
	return decision, err
}

// withReportedStatus returns a copy of the binding whose status reports the outcome for the given
// generation. If the status already reports the same success, lastScheduledTime does not change.
func withReportedStatus(current binding.Object, out outcome, generation int64, now metav1.Time) binding.Object {
	next, now := binding.ShallowCopy(current), now.Rfc3339Copy() // as the API server stores it
	status := next.BindingStatus()
	status.Conditions = slices.Clone(status.Conditions)
	if out.reason != "" {
		conditions.Set(&status.Conditions, metav1.Condition{
			Type: workv1alpha2.Scheduled, Status: conditionStatus(out.err == nil), Reason: out.reason, Message: out.message,
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	if out.err == nil || out.isProcessed {
		status.SchedulerObservedGeneration = generation
	}
	if out.err != nil {
		return next
	}
	status.SchedulerObservedAffinityName = out.affinityGroup
	isRescheduled := placement.RescheduleRequested(next.BindingSpec(), status) || !patch.Equal(current.BindingStatus(), status)
	if out.isPlaced && isRescheduled || out.reason != "" && status.LastScheduledTime == nil {
		status.LastScheduledTime = &now
	}
	return next
}

func conditionStatus(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// haveSameTargets reports whether both lists contain the same targets in any order. A different order
// is no reason for a write.
func haveSameTargets(a, b []workv1alpha2.TargetCluster) bool {
	if len(a) != len(b) {
		return false
	}
	byName := make(map[string]*workv1alpha2.TargetCluster, len(a))
	for i := range a {
		byName[a[i].Name] = &a[i]
	}
	if len(byName) != len(a) {
		return false
	}
	for i := range b {
		other, ok := byName[b[i].Name]
		if !ok || other.Replicas != b[i].Replicas || !slices.Equal(other.Components, b[i].Components) {
			return false
		}
		delete(byName, b[i].Name)
	}
	return true
}
