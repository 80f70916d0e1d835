package builtin

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func cronJob() interpreter.Rules {
	return interpreter.Rules{
		AggregateStatus: aggregateCronJob,
		Dependencies:    podDependencies("spec", "jobTemplate", "spec", "template"),
	}
}

// aggregateCronJob aggregates the active Jobs of all clusters and the latest times.
func aggregateCronJob(
	_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	old, err := typed[batchv1.CronJobStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	var status batchv1.CronJobStatus
	err = forEachStatus(items, func(_ string, reported *batchv1.CronJobStatus) {
		status.Active = append(status.Active, reported.Active...)
		status.LastScheduleTime = latestTime(status.LastScheduleTime, reported.LastScheduleTime)
		status.LastSuccessfulTime = latestTime(status.LastSuccessfulTime, reported.LastSuccessfulTime)
	})
	if err != nil {
		return nil, err
	}
	return replaceStatus(template, &old, &status)
}

// latestTime returns the later of two times. nil is earlier than any time.
func latestTime(a, b *metav1.Time) *metav1.Time {
	if a == nil || (b != nil && a.Before(b)) {
		return b
	}
	return a
}
