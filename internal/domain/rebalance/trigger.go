package rebalance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/tenancy"
)

// NeedsTrigger reports whether the binding has no reschedule request of the given time or later.
func NeedsTrigger(bound binding.Object, at time.Time) bool {
	requested := bound.BindingSpec().RescheduleTriggeredAt
	return requested == nil || requested.Time.Before(at)
}

// IsBindingOf reports whether the binding belongs to the workload. As in upstream, the apiVersion is not
// compared.
func IsBindingOf(bound binding.Object, workload Workload) bool {
	resource := bound.BindingSpec().Resource
	return resource.Kind == workload.Kind && resource.Name == workload.Name && resource.Namespace == workload.Namespace
}

// Result returns the entry for a workload with the given binding, for which a reschedule request is stored. If
// bound is nil, the workload has no binding. problem is empty, or tells the user why the workload is not
// placed afresh.
func Result(workload Workload, bound binding.Object) (entry appsv1alpha1.ObservedWorkload, problem string) {
	if bound == nil {
		return appsv1alpha1.ObservedWorkload{
			Workload: workload, Result: appsv1alpha1.RebalanceFailed, Reason: appsv1alpha1.RebalanceObjectNotFound,
		}, describeMissing(workload)
	}
	entry = appsv1alpha1.ObservedWorkload{Workload: workload, Result: appsv1alpha1.RebalanceSuccessful}
	switch spec := bound.BindingSpec(); {
	case spec.Placement == nil && len(spec.RequiredBy) > 0:
		return entry, "it is a dependency and goes to the clusters of the workloads that need it; rebalance these workloads"
	case placement.IsSchedulingSuspended(spec):
		return entry, "its scheduling is suspended, so it is placed when scheduling is resumed"
	case !placement.IsSchedulable(bound, spec):
		return entry, "no policy claims it, so it is not scheduled"
	case groupOf(spec.Resource.APIVersion) != groupOf(workload.APIVersion):
		return entry, fmt.Sprintf("the binding %s that was rescheduled belongs to a template of apiVersion %s",
			bound.GetName(), spec.Resource.APIVersion)
	}
	return entry, ""
}

// describeMissing describes why a workload may have no binding.
func describeMissing(workload Workload) string {
	version, err := schema.ParseGroupVersion(workload.APIVersion)
	if err == nil && tenancy.DefaultSkippedAPIs().Skips(version.WithKind(workload.Kind)) {
		return "objects of this kind are never propagated"
	}
	return "it has no binding, because it does not exist or no policy propagates it"
}

func groupOf(apiVersion string) string {
	return schema.FromAPIVersionAndKind(apiVersion, "").Group
}

// Problem is the reason why a workload is not placed afresh.
type Problem struct {
	Workload Workload
	Text     string
}

const (
	// maxNamedProblems limits the workloads that a message names.
	maxNamedProblems = 10
	// maxMessageBytes is the maximum size of an event's message.
	maxMessageBytes = 1024
)

// DescribeProblems returns the message about problems of one batch.
func DescribeProblems(problems []Problem) string {
	texts := make([]string, 0, min(len(problems), maxNamedProblems)+1)
	for i, problem := range problems {
		if i == maxNamedProblems {
			texts = append(texts, fmt.Sprintf("and %d more", len(problems)-i))
			break
		}
		texts = append(texts, Describe(problem.Workload)+": "+problem.Text)
	}
	return conditions.Truncate(strings.Join(texts, "; "), maxMessageBytes)
}

// Describe returns the kind, namespace and name of a workload, such as "Deployment shop/web".
func Describe(workload Workload) string {
	if workload.Namespace == "" {
		return workload.Kind + " " + workload.Name
	}
	return workload.Kind + " " + workload.Namespace + "/" + workload.Name
}

// DescribeResults counts the results of all workloads.
func DescribeResults(observed []appsv1alpha1.ObservedWorkload) string {
	failed := len(slices.DeleteFunc(slices.Clone(observed), func(entry appsv1alpha1.ObservedWorkload) bool {
		return entry.Result != appsv1alpha1.RebalanceFailed
	}))
	text := fmt.Sprintf("Triggered a fresh scheduling of %d workloads", len(observed)-failed)
	if failed > 0 {
		text += fmt.Sprintf("; %d workloads have no binding", failed)
	}
	return text
}
