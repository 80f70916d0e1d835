package work

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// IsKeptBySuspension reports whether a Work that the binding no longer needs is kept because
// dispatching to its cluster is suspended. A Work that was never delivered is not kept, because nothing
// in the cluster belongs to it.
func IsKeptBySuspension(karmadaWork *workv1alpha1.Work, bound binding.Object) bool {
	cluster, ok := ClusterOf(karmadaWork.Namespace)
	wasDelivered := conditions.Get(karmadaWork.Status.Conditions, workv1alpha1.WorkApplied) != nil ||
		len(karmadaWork.Status.ManifestStatuses) > 0
	return ok && wasDelivered && binding.IsDispatchSuspended(bound, cluster)
}

// maxNamedClusters is the maximum number of clusters that a condition names.
const maxNamedClusters = 10

// SetDeletionSuspended sets the binding's condition DeletionSuspended, which names the clusters whose
// Works are kept by a suspension although the binding no longer needs them. Without such Works, it
// removes the condition. works are all of the binding's Works.
func SetDeletionSuspended(bound binding.Object, works []*workv1alpha1.Work, now metav1.Time) {
	status, expected := bound.BindingStatus(), binding.ExpectedClusters(bound.BindingSpec())
	var kept []string
	for _, each := range works {
		cluster, _ := ClusterOf(each.Namespace)
		if IsKeptBySuspension(each, bound) && (bound.GetDeletionTimestamp() != nil || !expected.Has(cluster)) {
			kept = append(kept, cluster)
		}
	}
	if len(kept) == 0 {
		status.Conditions = slices.DeleteFunc(status.Conditions,
			func(c metav1.Condition) bool { return c.Type == workv1alpha2.DeletionSuspended })
		return
	}
	slices.Sort(kept)
	conditions.Set(&status.Conditions, metav1.Condition{
		Type: workv1alpha2.DeletionSuspended, Status: metav1.ConditionTrue, Reason: workv1alpha2.DeletionSuspendedReason,
		Message: deletionSuspendedMessage(bound, slices.Compact(kept)), ObservedGeneration: bound.GetGeneration(), LastTransitionTime: now,
	})
}

func deletionSuspendedMessage(bound binding.Object, clusters []string) string {
	more := ""
	if left := len(clusters) - maxNamedClusters; left > 0 {
		clusters, more = clusters[:maxNamedClusters], fmt.Sprintf(" and %d more clusters", left)
	}
	text := fmt.Sprintf("The objects stay in %s%s, because the dispatching is suspended. They are deleted when the dispatching is resumed.",
		strings.Join(clusters, ", "), more)
	if dependents := binding.SuspendedDependents(bound, clusters[0]); len(dependents) > 0 {
		return fmt.Sprintf("%s Resume it for the bindings that require this one, for example %s.", text, dependents[0])
	}
	if bound.GetDeletionTimestamp() == nil {
		return text
	}
	kind, namespace := "clusterresourcebinding", ""
	if binding.IsNamespaced(bound) {
		kind, namespace = "resourcebinding", " --namespace "+bound.GetNamespace()
	}
	return fmt.Sprintf(`%s Resume it in the policy or, without a policy: kubectl patch %s %s%s --type merge --patch '{"spec":{"suspension":null}}'`, text, kind, bound.GetName(), namespace)
}
