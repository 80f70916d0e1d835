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

// Report says in the condition EvictionHeld of a binding which evictions are kept
// longer than their time; without any there is no such condition.
func Report(bound binding.Object, outcome Outcome, now metav1.Time) {
	status := bound.BindingStatus()
	if len(outcome.Held) == 0 {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == workv1alpha2.EvictionHeld })
		return
	}
	reason := workv1alpha2.EvictionHeldReasonNotReplaced
	told := make([]string, len(outcome.Held))
	for i := range outcome.Held {
		told[i] = HeldError(&outcome.Held[i]).Error()
		if outcome.Held[i].Task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			reason = workv1alpha2.EvictionHeldReasonNotPurged
		}
	}
	conditions.Set(&status.Conditions, metav1.Condition{
		Type: workv1alpha2.EvictionHeld, Status: metav1.ConditionTrue, Reason: reason, Message: strings.Join(told, " "),
		ObservedGeneration: bound.GetGeneration(), LastTransitionTime: now,
	})
}

// HeldError says to people why a workload has not left a cluster, and what helps.
func HeldError(held *Ended) error {
	from := held.Task.FromCluster
	if held.Task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
		return fmt.Errorf("the time to leave cluster %s is over: %s. If that cluster will never come back: kubectl annotate cluster %s %s=%s",
			from, held.Why, from, clusterv1alpha1.DeclaredDeadAnnotation, clusterv1alpha1.DeclaredDeadValue)
	}
	text := fmt.Sprintf("the time to leave cluster %s is over, and the copy there is kept: %s. To give it up nevertheless, set suppressDeletion: false in the task of the binding's spec.gracefulEvictionTasks.", from, held.Why)
	return errors.New(text)
}
