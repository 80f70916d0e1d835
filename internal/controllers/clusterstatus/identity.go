package clusterstatus

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
)

// setIdentityCondition updates the condition about the member's identity.
func (c *controller) setIdentityCondition(cluster *clusterv1alpha1.Cluster, result probeResult) {
	stored := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch)
	if condition := domain.IdentityCondition(stored, result.identity, result.identityCause, cluster.Generation, c.now()); condition != nil {
		conditions.Set(&cluster.Status.Conditions, *condition)
	}
}

// recordIdentityEvents records an event when the cluster's address begins to lead to another cluster,
// and another event when this ends.
func (c *controller) recordIdentityEvents(stored, reported *clusterv1alpha1.Cluster) {
	before := conditions.Get(stored.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch)
	now := conditions.Get(reported.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch)
	switch {
	case now == nil || before != nil && before.Status == now.Status:
	case now.Status != metav1.ConditionFalse:
		c.events.RecordFailure(reported, now.Reason, errors.New(now.Message))
	case before != nil:
		c.events.ClearFailure(reported, before.Reason)
		c.events.RecordDecision(reported, now.Reason, "%s", now.Message)
	}
}
