package scheduler

import (
	"errors"
	"fmt"
	"maps"
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
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// retryMode says when a binding is retried if no event enqueues it earlier.
type retryMode int

const (
	// retryNever means that the binding waits for an event, or needs no retry.
	retryNever retryMode = iota
	// retryAfterConflict means that the binding was processed in a version that is not the newest.
	retryAfterConflict
	// retryWithBackoff retries with exponential backoff.
	retryWithBackoff
	// retryWhenCapacity retries when clusters report more capacity.
	retryWhenCapacity
)

// reasonQuotaExceeded is the status reason with which the API server rejects replicas that
// exceed a FederatedResourceQuota.
const reasonQuotaExceeded = metav1.StatusReason(workv1alpha2.BindingReasonQuotaExceeded)

// messageScheduled is the text of the condition and the event after a success.
const messageScheduled = "Binding has been scheduled successfully."

// verdict is the result of a pass.
type verdict struct {
	// err is the reason why the binding is not scheduled, or nil.
	err error
	// reason and message are the new values of the Scheduled condition. An empty reason leaves the
	// condition unchanged.
	reason, message string
	retry           retryMode
	// affinityGroup is the name of the affinity group that is in use.
	affinityGroup string
	// failedGroups are the affinity groups for which scheduling failed.
	failedGroups []placement.GroupFailure
	// failedEstimators are the errors of estimators, by the names of the clusters that could have
	// been chosen.
	failedEstimators map[string]string
	// isProcessed reports whether this pass decided about the generation of the binding: it kept or
	// chose clusters, or found that no clusters fit.
	isProcessed bool
	// isPlaced reports whether this pass chose the clusters. It is false if the current clusters
	// are still correct.
	isPlaced bool
}

// desiredBinding converts the result of placement.Schedule to the binding to store, without its
// status, and to the verdict to report. A result that differs only in the order of the clusters is
// not a change. The targets can change even if scheduling failed, because terminating clusters are
// always removed.
func desiredBinding(p pass, result placement.Result, err error) (binding.Object, verdict) {
	stored, desired := p.stored, withTargets(p, result)
	v := newVerdict(err)
	v.affinityGroup, v.failedGroups, v.isPlaced, v.isProcessed = result.AffinityName, result.FailedGroups, err == nil, true
	if err != nil && len(v.failedGroups) > 1 {
		v.message = withSentence(v.message, placement.DescribeOtherGroups(v.failedGroups))
	}
	var fit *placement.FitError
	switch {
	case err == nil:
	case !errors.As(err, &fit):
		return desired, v.withShortfall(desired)
	case fit.KeepsPrevious && len(result.Clusters) > 0:
		v.message += " The previous placement is kept."
		return desired, v.withShortfall(desired)
	case fit.KeepsPrevious:
		return desired, v
	}
	applied, encodingErr := placement.AppliedPlacement(stored.BindingSpec().Placement)
	if encodingErr != nil {
		return stored, newVerdict(encodingErr)
	}
	if appliedPlacement(stored) != applied {
		annotations := maps.Clone(desired.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[policyv1alpha1.AppliedPlacementAnnotation] = applied
		desired.SetAnnotations(annotations)
	}
	placement.RecordClustersWithoutAPI(desired, result.ClustersWithoutAPI)
	return desired, v
}

// withTargets returns the binding with the targets of a result. Clusters that a change of the
// placement excludes lose their copies at once. Other clusters keep them until their replacement is
// healthy.
func withTargets(p pass, result placement.Result) binding.Object {
	desired := binding.ShallowCopy(p.stored)
	spec := desired.BindingSpec()
	before := spec.Clusters
	if sameTargets(before, result.Clusters) {
		return desired
	}
	leavesAtOnce := func(name string) bool {
		cluster := p.snapshot.find(name)
		return p.snapshot.isTerminating(name) || result.PlacementChanged && cluster != nil && !clusteraffinity.Selects(spec.Placement, cluster)
	}
	failover.Move(spec, slices.Clip(result.Clusters), leavesAtOnce, p.started)
	binding.RecordDepartures(desired, departedClusters(p, before, desired, result.PlacementChanged), p.started)
	return desired
}

// departedClusters returns the clusters that lose their copies at once because a user changed the
// placement or the replicas. A change of a Cluster that excludes the workload is no change by a user
// of the workload.
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

// newVerdict converts an error of placement.Schedule, or nil, to a verdict.
func newVerdict(err error) verdict {
	v := verdict{err: err, reason: placement.Reason(err)}
	if err == nil {
		v.message = messageScheduled
		return v
	}
	v.message = err.Error()
	switch v.reason {
	case workv1alpha2.BindingReasonNoClusterFit:
		// No retry is needed, because a change of a cluster enqueues the binding again.
	case workv1alpha2.BindingReasonUnschedulable:
		v.retry = retryWhenCapacity
	default:
		v.retry = retryWithBackoff
	}
	return v
}

// failedVerdict returns the verdict on a binding that could not be processed.
func failedVerdict(stored binding.Object, err error) verdict {
	v := newVerdict(err)
	v.affinityGroup = stored.BindingStatus().SchedulerObservedAffinityName
	return v
}

// rejected returns the verdict to use after the API server rejected the write of the binding.
func (v verdict) rejected(stored binding.Object, err error) verdict {
	r := verdict{
		err: err, reason: workv1alpha2.BindingReasonSchedulerError, message: err.Error(), retry: retryWithBackoff,
		affinityGroup: stored.BindingStatus().SchedulerObservedAffinityName, failedGroups: v.failedGroups,
	}
	switch {
	case apierrors.IsConflict(err):
		r.retry = retryAfterConflict
	case apierrors.IsNotFound(err):
		r.retry = retryNever
	case loop.IsNamespaceTerminating(err):
		r.retry = retryNever
	case apierrors.ReasonForError(err) == reasonQuotaExceeded:
		r.reason = workv1alpha2.BindingReasonQuotaExceeded
	}
	if v.reason == workv1alpha2.BindingReasonNoClusterFit {
		r.reason = v.reason
		r.err = errors.Join(v.err, err)
		r.message = fmt.Sprintf("%s; %s", v.message, err)
	}
	return r
}

// unchangedVerdict returns the verdict on a binding whose clusters do not change. The verdict
// replaces a Scheduled condition of an earlier generation, and a condition with the reason
// SchedulerNotReporting. A binding without target clusters is not reported as scheduled.
func unchangedVerdict(stored binding.Object) verdict {
	v := newVerdict(nil)
	v.affinityGroup = stored.BindingStatus().SchedulerObservedAffinityName
	condition := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
	if condition != nil && condition.Status == metav1.ConditionFalse &&
		(len(stored.BindingSpec().Clusters) == 0 || condition.ObservedGeneration == stored.GetGeneration()) &&
		condition.Reason != workv1alpha2.BindingReasonSchedulerNotReporting {
		v.reason, v.message = "", ""
	}
	return v
}

// withShortfall adds the number of replicas without a cluster to the message, if the binding still
// has targets.
func (v verdict) withShortfall(desired binding.Object) verdict {
	if len(desired.BindingSpec().Clusters) > 0 {
		v.message = withSentence(v.message, placement.DescribeShortfall(desired.BindingSpec()))
	}
	return v
}

// withLimits adds a sentence about the capacity of the clusters to the message of a failure that can
// be a lack of capacity.
func (v verdict) withLimits(sentence string) verdict {
	if v.err != nil && v.reason != workv1alpha2.BindingReasonNoClusterFit {
		v.message = withSentence(v.message, sentence)
	}
	return v
}

// withUnknownClusters adds the clusters of the placement that do not exist to the message. Unknown
// clusters may explain a failure, or a success that uses fewer clusters than expected.
func (v verdict) withUnknownClusters(stored binding.Object, find placement.ClusterLookup) verdict {
	if v.message != "" {
		v.message = withSentence(v.message,
			placement.DescribeUnknownClusters(placement.UnknownClusters(stored.BindingSpec().Placement, v.affinityGroup, v.err != nil, find)))
	}
	return v
}

// withFailedEstimators adds the clusters whose estimators failed to the message. A success keeps the
// note of the stored condition if nothing else in the condition changes, so that an estimator that
// fails only sometimes causes no writes. A binding that is not scheduled in this pass keeps the note
// about its last scheduling.
func (v verdict) withFailedEstimators(stored binding.Object) verdict {
	if v.message == "" {
		return v
	}
	condition := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
	keepsNote := v.err == nil && condition != nil && condition.Status == metav1.ConditionTrue &&
		(!v.isPlaced || condition.ObservedGeneration == stored.GetGeneration()) && isSameExceptNote(condition.Message, v.message)
	if keepsNote {
		v.message = condition.Message
	} else {
		v.message = withEstimatorNote(v.message, v.failedEstimators)
	}
	return v
}

// withSentence returns the message with the sentence appended. The sentence may be empty.
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

// isConditionOutdated reports whether the condition of an unchanged binding is no longer correct,
// because clusters of its placement were added or removed.
func isConditionOutdated(stored binding.Object, find placement.ClusterLookup) bool {
	condition := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
	return condition != nil && condition.Status == metav1.ConditionTrue && !isSameExceptNote(condition.Message, unchangedVerdict(stored).withUnknownClusters(stored, find).message)
}

// decide returns the action for a binding. It adds to placement.Decide that an outdated condition is
// reported again.
func decide(stored binding.Object, find placement.ClusterLookup, features placement.Features) (placement.Decision, error) {
	decision, err := placement.Decide(stored, stored.BindingSpec(), stored.BindingStatus(), find, features)
	if err == nil && decision.Action == placement.ActionNone && isConditionOutdated(stored, find) {
		return placement.Decision{Action: placement.ActionObserve, Reason: "the condition names outdated clusters"}, nil
	}
	return decision, err
}

// withReportedStatus returns the binding with the status for the verdict on the given generation.
// If the status already reports the same success, its time is kept.
func withReportedStatus(current binding.Object, v verdict, generation int64, now metav1.Time) binding.Object {
	next, now := binding.ShallowCopy(current), now.Rfc3339Copy() // as the API server stores it
	status := next.BindingStatus()
	status.Conditions = slices.Clone(status.Conditions)
	if v.reason != "" {
		conditions.Set(&status.Conditions, metav1.Condition{
			Type: workv1alpha2.Scheduled, Status: conditionStatus(v.err == nil), Reason: v.reason, Message: v.message,
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	if v.err == nil || v.isProcessed {
		status.SchedulerObservedGeneration = generation
	}
	if v.err != nil {
		return next
	}
	status.SchedulerObservedAffinityName = v.affinityGroup
	isRescheduled := placement.RescheduleRequested(next.BindingSpec(), status) || !patch.Equal(current.BindingStatus(), status)
	if v.isPlaced && isRescheduled || v.reason != "" && status.LastScheduledTime == nil {
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

// sameTargets reports whether two lists contain the same targets in any order, because a changed
// order of preference is no reason for a write.
func sameTargets(a, b []workv1alpha2.TargetCluster) bool {
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
