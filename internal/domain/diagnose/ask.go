package diagnose

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// smallFleet is the maximum number of clusters that are all queried. In a larger fleet only the
// clusters with a problem are queried, because each query is at least one request.
const smallFleet = 10

// Query says what to read from one member.
type Query struct {
	Cluster string
	// Object is the namespace and name of the member object. An override policy can change them.
	Object types.NamespacedName
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
		query := Query{Cluster: each.name, Object: each.memberKey(), NeedsNamespace: each.isRejected(), NeedsPods: each.item.Health == workv1alpha2.ResourceUnhealthy}
		if isSmall || query.NeedsNamespace || query.NeedsPods {
			queries = append(queries, query)
		}
	}
	return queries
}

// memberKey returns the namespace and name of the object in the Work. If the Work cannot be decoded,
// it returns those of the template.
func (c *clusterFacts) memberKey() types.NamespacedName {
	manifests := c.work.Spec.Workload.Manifests
	if len(manifests) == 0 {
		return c.Key
	}
	manifest, err := work.DecodeManifest(manifests[0])
	if err != nil {
		return c.Key
	}
	return types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
}

func (c *clusterFacts) isRejected() bool {
	return conditions.HasStatus(c.work.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse)
}
