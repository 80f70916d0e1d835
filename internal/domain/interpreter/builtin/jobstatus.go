package builtin

import (
	"context"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Messages and reasons of a Job's aggregated conditions.
const (
	jobFailedMessage   = "Job executed failed in member clusters "
	jobFailedReason    = "JobFailed"
	jobCompleteMessage = "Job completed"
	jobCompleteReason  = "Completed"
	jobCriteriaReason  = "CompletionsReached"
)

// jobAggregator aggregates a Job's status. The result passes the API server's validation of status
// updates:
//
//   - A finished Job does not change, and a failing Job stays failing.
//   - succeeded and failed never decrease, even if a cluster is removed.
//   - Failed and Complete require the preceding conditions FailureTarget and SuccessCriteriaMet, a
//     start time, and no active Pods.
//   - The start time never changes once it is set.
type jobAggregator struct {
	now func() time.Time
}

func (j jobAggregator) aggregate(
	_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	old, err := typed[batchv1.JobStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	if finishedType(old.Conditions) != "" {
		return template, nil
	}
	totals, err := sumJobs(items)
	if err != nil {
		return nil, err
	}
	status := batchv1.JobStatus{
		Active:     totals.active,
		Succeeded:  max(totals.succeeded, old.Succeeded),
		Failed:     max(totals.failed, old.Failed),
		Conditions: j.conditions(&old, &totals),
	}
	status.StartTime = totals.startTime(old.StartTime, len(status.Conditions) > 0)
	if finishedType(status.Conditions) == batchv1.JobComplete {
		status.CompletionTime = totals.completionTime()
	}
	return replaceStatus(template, &old, &status)
}

// conditions returns the aggregated conditions, the preceding conditions first.
func (j jobAggregator) conditions(old *batchv1.JobStatus, totals *jobTotals) []batchv1.JobCondition {
	if len(totals.failedClusters) > 0 || isConditionTrue(old.Conditions, batchv1.JobFailureTarget) {
		message := jobFailedMessage + strings.Join(totals.failedClusters, ",")
		if len(totals.failedClusters) == 0 {
			// No item shows the failed cluster anymore, for example because it was removed. The Job
			// stays failed, with its stored message.
			message = findJobCondition(old.Conditions, batchv1.JobFailureTarget).Message
		}
		conditions := []batchv1.JobCondition{j.condition(old, batchv1.JobFailureTarget, jobFailedReason, message)}
		if totals.active > 0 {
			return conditions
		}
		return append(conditions, j.condition(old, batchv1.JobFailed, jobFailedReason, message))
	}
	if totals.clusters > 0 && totals.completeClusters == totals.clusters {
		return []batchv1.JobCondition{
			j.condition(old, batchv1.JobSuccessCriteriaMet, jobCriteriaReason, jobCompleteMessage),
			j.condition(old, batchv1.JobComplete, jobCompleteReason, jobCompleteMessage),
		}
	}
	return nil
}

// condition returns a condition with the status True. If an equal condition is stored, it keeps the
// stored times.
func (j jobAggregator) condition(old *batchv1.JobStatus, kind batchv1.JobConditionType, reason, message string) batchv1.JobCondition {
	now := metav1.NewTime(j.now())
	condition := batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastProbeTime: now, LastTransitionTime: now,
	}
	stored := findJobCondition(old.Conditions, kind)
	if stored == nil || stored.Status != condition.Status {
		return condition
	}
	condition.LastTransitionTime = stored.LastTransitionTime
	if stored.Reason == reason && stored.Message == message {
		condition.LastProbeTime = stored.LastProbeTime
	}
	return condition
}

// jobTotals holds the sums of a Job's statuses from all clusters.
type jobTotals struct {
	active, succeeded, failed int32
	// clusters is the number of all items, including those without a status.
	clusters, completeClusters  int
	failedClusters              []string // sorted
	startTimes, completionTimes []metav1.Time
}

func sumJobs(items []workv1alpha2.AggregatedStatusItem) (jobTotals, error) {
	totals := jobTotals{clusters: len(items)}
	err := forEachStatus(items, func(cluster string, status *batchv1.JobStatus) {
		totals.active = addInt32(totals.active, status.Active)
		totals.succeeded = addInt32(totals.succeeded, status.Succeeded)
		totals.failed = addInt32(totals.failed, status.Failed)
		switch finishedType(status.Conditions) {
		case batchv1.JobComplete:
			totals.completeClusters++
		case batchv1.JobFailed:
			totals.failedClusters = append(totals.failedClusters, cluster)
		}
		if status.StartTime != nil {
			totals.startTimes = append(totals.startTimes, *status.StartTime)
		}
		if status.CompletionTime != nil {
			totals.completionTimes = append(totals.completionTimes, *status.CompletionTime)
		}
	})
	slices.Sort(totals.failedClusters)
	slices.SortFunc(totals.startTimes, compareTimes)
	slices.SortFunc(totals.completionTimes, compareTimes)
	return totals, err
}

// startTime returns the stored time, if any. Otherwise, it returns the earliest start time after all
// clusters have started, because the API server rejects a later change. If the Job's result is decided,
// startTime does not wait for all clusters, because those that reported a start time may be removed
// before the Job is finished.
func (j *jobTotals) startTime(stored *metav1.Time, decided bool) *metav1.Time {
	if stored != nil {
		return stored
	}
	if len(j.startTimes) == 0 || (len(j.startTimes) < j.clusters && !decided) {
		return nil
	}
	return &j.startTimes[0]
}

// completionTime returns the latest completion time, or nil until all clusters have completed.
func (j *jobTotals) completionTime() *metav1.Time {
	if len(j.completionTimes) == 0 || len(j.completionTimes) < j.clusters {
		return nil
	}
	return &j.completionTimes[len(j.completionTimes)-1]
}

// finishedType returns the type of the first True condition, Complete or Failed, or "" if the Job is not
// finished.
func finishedType(conditions []batchv1.JobCondition) batchv1.JobConditionType {
	for i := range conditions {
		ends := conditions[i].Type == batchv1.JobComplete || conditions[i].Type == batchv1.JobFailed
		if ends && conditions[i].Status == corev1.ConditionTrue {
			return conditions[i].Type
		}
	}
	return ""
}

func findJobCondition(conditions []batchv1.JobCondition, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

func isConditionTrue(conditions []batchv1.JobCondition, kind batchv1.JobConditionType) bool {
	condition := findJobCondition(conditions, kind)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

func compareTimes(a, b metav1.Time) int { return a.Compare(b.Time) }
