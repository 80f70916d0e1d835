package failover

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// Flags of karmada-controller-manager without which taints do not evict workloads.
const (
	FlagFailover  = "--feature-gates=Failover=true"
	FlagNoExecute = "--enable-no-execute-taint-eviction=true"
)

// evictsNothing is the start of the message about disabled evictions. The remedy follows it.
const evictsNothing = "NoExecute taints evict no workloads: "

// SetTaintsEvict updates the cluster's condition TaintsEvict, which only clusters with a NoExecute
// taint have. missing lists the flags that must be set so that taints evict workloads; it is empty if
// evictions are enabled.
func SetTaintsEvict(cluster *clusterv1alpha1.Cluster, missing []string, now metav1.Time) {
	if !HasEvictingTaint(cluster) {
		conditions.Remove(&cluster.Status.Conditions, clusterv1alpha1.ClusterConditionTaintsEvict)
		return
	}
	condition := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionTaintsEvict, Status: metav1.ConditionTrue, LastTransitionTime: now,
		Reason: clusterv1alpha1.TaintEvictionEnabledReason, Message: "NoExecute taints evict the workloads that do not tolerate them",
	}
	if len(missing) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1alpha1.TaintEvictionDisabledReason
		condition.Message = evictsNothing + describeMissingFlags(missing)
	}
	conditions.Set(&cluster.Status.Conditions, condition)
}

func describeMissingFlags(missing []string) string {
	text := "start karmada-controller-manager with " + strings.Join(missing, " and ")
	if strings.Join(missing, " ") == FlagFailover+" "+FlagNoExecute {
		text += " (karmada up --failover and karmadactl init --failover set both)"
	}
	return text
}

// EvictionRemedy returns how to enable the evictions that the condition TaintsEvict reports as
// disabled.
func EvictionRemedy(condition *metav1.Condition) string {
	return strings.TrimPrefix(condition.Message, evictsNothing)
}
