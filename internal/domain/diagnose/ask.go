package diagnose

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// smallFleet is the maximum number of clusters that are all queried. In a larger fleet only the
// clusters with a problem are queried, because each query is at least one request.
const smallFleet = 10

// Query says what to read from one member.
type Query struct {
	Cluster string
	// NeedsNamespace requests the namespace of the object, NeedsPods its Pods and events.
	NeedsNamespace, NeedsPods bool
}

// MemberQueries returns the members whose answers Trace needs, sorted by name: all clusters of a
// small fleet, otherwise the clusters whose Work reports a failure or an unhealthy object. It needs
// all facts except Members.
func MemberQueries(facts Facts) []Query {
	if !facts.ownsBinding() || facts.Works.Err != nil {
		return nil
	}
	of := facts.clusterFacts()
	isSmall := len(expectedClusters(facts.Binding.Value)) <= smallFleet
	var queries []Query
	for i := range of {
		each := &of[i]
		if !each.isExpected || each.work == nil || each.member == nil && facts.Clusters.Err == nil {
			continue
		}
		query := Query{Cluster: each.name, NeedsNamespace: each.isRejected(), NeedsPods: each.item.Health == workv1alpha2.ResourceUnhealthy}
		if isSmall || query.NeedsNamespace || query.NeedsPods {
			queries = append(queries, query)
		}
	}
	return queries
}

func (c *clusterFacts) isRejected() bool {
	return conditions.HasStatus(c.work.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse)
}
