package registries

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// WithBackendProblems returns the result of NextStatus with the problems of the back end by cluster in
// the message of the condition Cached. The reason is BackendFailing if nothing else is wrong.
func WithBackendProblems(stored, next searchv1alpha1.ResourceRegistryStatus, problems map[string]string,
	now time.Time) searchv1alpha1.ResourceRegistryStatus {
	computed := conditions.Get(next.Conditions, searchv1alpha1.RegistryConditionCached)
	if len(problems) == 0 || computed == nil {
		return next
	}
	condition := *computed
	printable := make(map[string]string, len(problems))
	for cluster, problem := range problems {
		printable[cluster] = conditions.Truncate(conditions.ToPrintable(problem), maxStatusMessage)
	}
	text := conditions.EnumerateCauses("the back end does not store all objects: ", printable)
	if condition.Status == metav1.ConditionTrue {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, searchv1alpha1.RegistryReasonBackendFailing, text
	} else {
		condition.Message += "; " + text
	}
	condition.LastTransitionTime = metav1.NewTime(now)
	// The time of the transition is that of the stored condition if that was False too.
	next.Conditions = slices.Clone(stored.Conditions)
	conditions.Set(&next.Conditions, condition)
	return next
}
