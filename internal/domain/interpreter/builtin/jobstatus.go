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

// Messages and reasons of the conditions of a Job over many clusters.
const (
	jobFailedMessage   = "Job executed failed in member clusters "
	jobFailedReason    = "JobFailed"
	jobCompleteMessage = "Job completed"
	jobCompleteReason  = "Completed"
	jobCriteriaReason  = "CompletionsReached"
)

// jobAggregator makes the status of a Job from those of its clusters, in a form
// that the API server's rules for transitions of that status let pass:
//
//   - A finished Job stays as it is, and a failing one stays failing.
//   - succeeded and failed never decrease, though a cluster may drop out.
//   - Failed and Complete need their forerunners FailureTarget and
//     SuccessCriteriaMet, a start time, and no active pods.
//   - The start time never changes once it is set.
type jobAggregator struct {
	now func() time.Time
}

func (a jobAggregator) aggregate(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	old, err := typed[batchv1.JobStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	if finish(old.Conditions) != "" {
		return template, nil
	}
	totals, err := readJobs(items)
	if err != nil {
		return nil, err
	}
	status := batchv1.JobStatus{
		Active:     totals.active,
		Succeeded:  max(totals.succeeded, old.Succeeded),
		Failed:     max(totals.failed, old.Failed),
		Conditions: a.conditions(&old, &totals),
	}
	status.StartTime = totals.startTime(old.StartTime, len(status.Conditions) > 0)
	if finish(status.Conditions) == batchv1.JobComplete {
		status.CompletionTime = totals.completionTime()
	}
	return replaceStatus(template, &old, &status)
}

// conditions returns the verdict over all clusters, forerunners first.
func (a jobAggregator) conditions(old *batchv1.JobStatus, totals *jobTotals) []batchv1.JobCondition {
	if len(totals.failedIn) > 0 || isTrue(old.Conditions, batchv1.JobFailureTarget) {
		message := jobFailedMessage + strings.Join(totals.failedIn, ",")
		if len(totals.failedIn) == 0 {
			// The cluster that failed is gone from the items; its failure is not.
			message = find(old.Conditions, batchv1.JobFailureTarget).Message
		}
		conditions := []batchv1.JobCondition{a.condition(old, batchv1.JobFailureTarget, jobFailedReason, message)}
		if totals.active > 0 {
			return conditions
		}
		return append(conditions, a.condition(old, batchv1.JobFailed, jobFailedReason, message))
	}
	if totals.clusters > 0 && totals.complete == totals.clusters {
		return []batchv1.JobCondition{
			a.condition(old, batchv1.JobSuccessCriteriaMet, jobCriteriaReason, jobCompleteMessage),
			a.condition(old, batchv1.JobComplete, jobCompleteReason, jobCompleteMessage),
		}
	}
	return nil
}

// condition returns a true condition, with the times of an equal stored one.
func (a jobAggregator) condition(old *batchv1.JobStatus, kind batchv1.JobConditionType, reason, message string) batchv1.JobCondition {
	now := metav1.NewTime(a.now())
	condition := batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastProbeTime: now, LastTransitionTime: now,
	}
	stored := find(old.Conditions, kind)
	if stored == nil || stored.Status != condition.Status {
		return condition
	}
	condition.LastTransitionTime = stored.LastTransitionTime
	if stored.Reason == reason && stored.Message == message {
		condition.LastProbeTime = stored.LastProbeTime
	}
	return condition
}

// jobTotals is what the clusters of a Job report together.
type jobTotals struct {
	active, succeeded, failed int32
	// clusters counts all items, those without status included.
	clusters, complete int
	failedIn           []string // sorted
	starts, ends       []metav1.Time
}

func readJobs(items []workv1alpha2.AggregatedStatusItem) (jobTotals, error) {
	totals := jobTotals{clusters: len(items)}
	err := eachStatus(items, func(cluster string, status *batchv1.JobStatus) {
		totals.active = addInt32(totals.active, status.Active)
		totals.succeeded = addInt32(totals.succeeded, status.Succeeded)
		totals.failed = addInt32(totals.failed, status.Failed)
		switch finish(status.Conditions) {
		case batchv1.JobComplete:
			totals.complete++
		case batchv1.JobFailed:
			totals.failedIn = append(totals.failedIn, cluster)
		}
		if status.StartTime != nil {
			totals.starts = append(totals.starts, *status.StartTime)
		}
		if status.CompletionTime != nil {
			totals.ends = append(totals.ends, *status.CompletionTime)
		}
	})
	slices.Sort(totals.failedIn)
	slices.SortFunc(totals.starts, compareTimes)
	slices.SortFunc(totals.ends, compareTimes)
	return totals, err
}

// startTime returns the stored time if there is one, and else the earliest time,
// once all clusters have started: an earlier one could not be stored afterwards.
// A Job whose fate is decided waits for nobody, for it may lose the clusters
// that know the time before it is finished.
func (t *jobTotals) startTime(stored *metav1.Time, decided bool) *metav1.Time {
	if stored != nil {
		return stored
	}
	if len(t.starts) == 0 || (len(t.starts) < t.clusters && !decided) {
		return nil
	}
	return &t.starts[0]
}

// completionTime returns when the last cluster completed; nil until all have.
func (t *jobTotals) completionTime() *metav1.Time {
	if len(t.ends) == 0 || len(t.ends) < t.clusters {
		return nil
	}
	return &t.ends[len(t.ends)-1]
}

// finish returns the first condition that ends a Job, Complete or Failed; "" if
// the Job still runs.
func finish(conditions []batchv1.JobCondition) batchv1.JobConditionType {
	for i := range conditions {
		ends := conditions[i].Type == batchv1.JobComplete || conditions[i].Type == batchv1.JobFailed
		if ends && conditions[i].Status == corev1.ConditionTrue {
			return conditions[i].Type
		}
	}
	return ""
}

func find(conditions []batchv1.JobCondition, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

func isTrue(conditions []batchv1.JobCondition, kind batchv1.JobConditionType) bool {
	condition := find(conditions, kind)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

func compareTimes(a, b metav1.Time) int { return a.Compare(b.Time) }
