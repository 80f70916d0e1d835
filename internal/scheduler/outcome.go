package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
)

// retry says when a binding is looked at again if nothing changes.
type retry int

const (
	// never: only an event helps, or nothing has to.
	never retry = iota
	// soon: the binding that was looked at is not the newest.
	soon
	// later: with back-off.
	later
	// whenRoom: when clusters have more room.
	whenRoom
)

// reasonQuotaExceeded is the reason of the API server's answer when a
// FederatedResourceQuota forbids the replicas.
const reasonQuotaExceeded = metav1.StatusReason(workv1alpha2.BindingReasonQuotaExceeded)

// messageScheduled is what the condition and the event of a success say.
const messageScheduled = "Binding has been scheduled successfully."

// verdict is what a pass found out.
type verdict struct {
	// err is why the binding is not scheduled; nil if it is.
	err error
	// reason and message are those of the Scheduled condition. Without a reason
	// the condition stays as it is.
	reason, message string
	retry           retry
	// affinity is the affinity group in use.
	affinity string
	// groups are the affinity groups that did not work out.
	groups []placement.GroupFailure
	// placed is whether clusters were chosen, rather than those there found right.
	placed bool
}

// outcome turns the answer of placement.Schedule into the binding as it is to be
// stored, status left out, and what to tell about it. An answer in another order
// than the stored one is no difference. Beside an error the targets change, too:
// clusters being removed are left, whatever else cannot be decided.
func outcome(stored binding.Object, result placement.Result, err error) (binding.Object, verdict) {
	desired := binding.Copy(stored)
	v := verdictOf(err)
	v.affinity, v.groups, v.placed = result.AffinityName, result.FailedGroups, err == nil
	if !sameTargets(stored.BindingSpec().Clusters, result.Clusters) {
		desired.BindingSpec().Clusters = slices.Clip(result.Clusters)
	}
	var fit *placement.FitError
	switch {
	case err == nil:
	case !errors.As(err, &fit):
		return desired, v.lacking(desired)
	case fit.KeepsPrevious && len(result.Clusters) > 0:
		v.message += " The previous placement is kept."
		return desired, v.lacking(desired)
	case fit.KeepsPrevious:
		return desired, v
	}
	applied, encodingErr := placement.AppliedPlacement(stored.BindingSpec().Placement)
	if encodingErr != nil {
		return stored, verdictOf(encodingErr)
	}
	if annotations := desired.GetAnnotations(); annotations[policyv1alpha1.AppliedPlacementAnnotation] != applied {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[policyv1alpha1.AppliedPlacementAnnotation] = applied
		desired.SetAnnotations(annotations)
	}
	return desired, v
}

// verdictOf says what an error of placement.Schedule, or none, means.
func verdictOf(err error) verdict {
	v := verdict{err: err, reason: placement.Reason(err)}
	if err == nil {
		v.message = messageScheduled
		return v
	}
	v.message = err.Error()
	switch v.reason {
	case workv1alpha2.BindingReasonNoClusterFit:
		// News of a cluster has it looked at again.
	case workv1alpha2.BindingReasonUnschedulable:
		v.retry = whenRoom
	default:
		v.retry = later
	}
	return v
}

// failed is the verdict on a binding that could not even be looked at.
func failed(stored binding.Object, err error) verdict {
	v := verdictOf(err)
	v.affinity = stored.BindingStatus().SchedulerObservedAffinityName
	return v
}

// refused is the verdict after the API server did not take the result.
func (v verdict) refused(stored binding.Object, err error) verdict {
	r := verdict{
		err: err, reason: workv1alpha2.BindingReasonSchedulerError, message: err.Error(), retry: later,
		affinity: stored.BindingStatus().SchedulerObservedAffinityName, groups: v.groups,
	}
	switch {
	case apierrors.IsConflict(err):
		r.retry = soon
	case apierrors.IsNotFound(err):
		r.retry = never
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		r.retry = never
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

// settled is the verdict on a binding whose result needs no change. The condition
// is made to say so, too, when what it says is about an earlier generation: a
// failure that the user has undone, or a success that could not be told. A binding
// without targets proves no success. That no scheduler reports is over in any case.
func settled(stored binding.Object) verdict {
	v := verdictOf(nil)
	v.affinity = stored.BindingStatus().SchedulerObservedAffinityName
	told := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
	if told != nil && told.Status == metav1.ConditionFalse &&
		(len(stored.BindingSpec().Clusters) == 0 || told.ObservedGeneration == stored.GetGeneration()) &&
		told.Reason != workv1alpha2.BindingReasonSchedulerNotReporting {
		v.reason, v.message = "", ""
	}
	return v
}

// lacking is the verdict that says, too, how many replicas of a binding that still
// has targets are not placed.
func (v verdict) lacking(desired binding.Object) verdict {
	if len(desired.BindingSpec().Clusters) > 0 {
		v.message = withSentence(v.message, placement.Shortfall(desired.BindingSpec()))
	}
	return v
}

// remarking is the verdict that names, too, clusters of the placement that do not
// exist: a success may be less than the user hoped for, and a failure due to it.
func (v verdict) remarking(stored binding.Object, find placement.ClusterLookup) verdict {
	if v.message != "" {
		v.message = withSentence(v.message,
			placement.DescribeUnknownClusters(placement.UnknownClusters(stored.BindingSpec().Placement, v.affinity, v.err != nil, find)))
	}
	return v
}

// withSentence puts a sentence, which may be empty, behind a message.
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

// outdated tells that a binding which needs nothing has a condition that says
// something else than is true now: clusters that its placement names came or went.
func outdated(stored binding.Object, find placement.ClusterLookup) bool {
	told := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
	return told != nil && told.Status == metav1.ConditionTrue && told.Message != settled(stored).remarking(stored, find).message
}

// decide says what a binding needs. A result of which it is not known to which
// affinity group it belongs, because a scheduler ended between its two writes, is
// made anew.
func decide(stored binding.Object, find placement.ClusterLookup, features placement.Features) (placement.Decision, error) {
	spec, status := stored.BindingSpec(), stored.BindingStatus()
	decision, err := placement.Decide(stored, spec, status, find, features)
	if err == nil && decision.Action == placement.ActionObserve &&
		len(spec.Placement.ClusterAffinities) > 0 && status.SchedulerObservedAffinityName == "" {
		return placement.Decision{
			Action: placement.ActionSchedule, Type: placement.ReconcileSchedule, Reason: "the affinity group in use is not recorded",
		}, nil
	}
	if err == nil && decision.Action == placement.ActionNone && outdated(stored, find) {
		return placement.Decision{Action: placement.ActionObserve, Reason: "what the condition says of clusters is not true any more"}, nil
	}
	return decision, err
}

// report returns the binding with the status that tells the verdict on the given
// generation, which was looked at now. A success that was told before is not told
// again with a later time.
func report(current binding.Object, v verdict, generation int64, now metav1.Time) binding.Object {
	next := binding.Copy(current)
	status := next.BindingStatus()
	if v.reason != "" {
		conditions.Set(&status.Conditions, metav1.Condition{
			Type: workv1alpha2.Scheduled, Status: truth(v.err == nil), Reason: v.reason, Message: v.message,
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	if v.err != nil {
		return next
	}
	status.SchedulerObservedGeneration = generation
	status.SchedulerObservedAffinityName = v.affinity
	again := placement.RescheduleRequested(next.BindingSpec(), status) || !patch.Same(current.BindingStatus(), status)
	if v.placed && again || v.reason != "" && status.LastScheduledTime == nil {
		status.LastScheduledTime = &now
	}
	return next
}

func truth(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// sameTargets compares targets whatever their order: clusters that come and go
// in the order of preference are no reason to write.
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
