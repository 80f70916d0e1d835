package failover

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// SetEvictionHeld sets the binding's condition EvictionHeld, which lists the evictions that take longer
// than their grace period. Without such evictions, it removes the condition.
func SetEvictionHeld(bound binding.Object, outcome Outcome, now metav1.Time) {
	status := bound.BindingStatus()
	if len(outcome.Held) == 0 {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == workv1alpha2.EvictionHeld })
		return
	}
	reason := workv1alpha2.EvictionHeldReasonNotReplaced
	messages := make([]string, len(outcome.Held))
	for i := range outcome.Held {
		messages[i] = HeldError(&outcome.Held[i]).Error()
		if outcome.Held[i].Task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			reason = workv1alpha2.EvictionHeldReasonNotPurged
		}
	}
	conditions.Set(&status.Conditions, metav1.Condition{
		Type: workv1alpha2.EvictionHeld, Status: metav1.ConditionTrue, Reason: reason, Message: strings.Join(messages, " "),
		ObservedGeneration: bound.GetGeneration(), LastTransitionTime: now,
	})
}

// HeldError describes to users why an eviction is held and how to finish it.
func HeldError(held *TaskResult) error {
	from := held.Task.FromCluster
	if held.Task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
		return fmt.Errorf("the grace period for the eviction from cluster %s is over: %s. If the cluster will never come back: kubectl annotate cluster %s %s=%s",
			from, held.Reason, from, clusterv1alpha1.DeclaredDeadAnnotation, clusterv1alpha1.DeclaredDeadValue)
	}
	text := fmt.Sprintf("the grace period for the eviction from cluster %s is over, and the copy there is kept: %s. To delete the copy anyway, set suppressDeletion: false in the task of the binding's spec.gracefulEvictionTasks.", from, held.Reason)
	return errors.New(text)
}
