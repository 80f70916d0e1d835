package clusterstatus

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
)

// setBoundsCondition updates the condition about the limits that the member recently exceeded.
func (c *controller) setBoundsCondition(cluster *clusterv1alpha1.Cluster, target *member.Member) {
	if target == nil {
		return
	}
	var exceeded []string
	for _, hit := range target.ExceededBounds() {
		exceeded = append(exceeded, hit.Description())
	}
	stored := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionWithinBounds)
	if condition := domain.WithinBoundsCondition(stored, exceeded, cluster.Generation, metav1.NewTime(c.now())); condition != nil {
		conditions.Set(&cluster.Status.Conditions, *condition)
	}
}

// recordBoundsEvents records an event when the member begins to exceed limits, and another event when
// this ends.
func (c *controller) recordBoundsEvents(stored, reported *clusterv1alpha1.Cluster) {
	before := conditions.Get(stored.Status.Conditions, clusterv1alpha1.ClusterConditionWithinBounds)
	now := conditions.Get(reported.Status.Conditions, clusterv1alpha1.ClusterConditionWithinBounds)
	switch {
	case now == nil || before != nil && before.Status == now.Status:
	case now.Status == metav1.ConditionFalse:
		c.events.RecordFailure(reported, now.Reason, errors.New(now.Message))
	default:
		c.events.ClearFailure(reported, clusterv1alpha1.BoundExceededReason)
		c.events.RecordDecision(reported, now.Reason, "%s", now.Message)
	}
}
