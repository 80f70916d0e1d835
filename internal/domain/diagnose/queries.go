package diagnose

import (
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// smallFleet is the maximum number of clusters that are all queried. In a larger fleet, only the clusters
// with a problem are queried, because each query is at least one request.
const smallFleet = 10

// Query specifies what to read from one member.
type Query struct {
	Cluster string
	// Object is the namespace and name of the member object, which an override policy can change.
	Object types.NamespacedName
	// NeedsNamespace requests the object's namespace. NeedsPods requests its Pods and events.
	NeedsNamespace, NeedsPods bool
}

// MemberQueries returns what Trace needs from members, sorted by cluster: from all clusters of a small
// fleet, otherwise from the clusters whose Work reports a failure or an unhealthy object. It uses all
// facts except Members.
func MemberQueries(facts Facts) []Query {
	p := newPipeline(&facts)
	if !p.hasWorks() {
		return nil
	}
	expected := 0
	for _, each := range p.clusters {
		if each.isExpected {
			expected++
		}
	}
	var queries []Query
	for _, each := range p.clusters {
		if !each.isExpected || each.work == nil || each.member == nil && p.Clusters.Err == nil {
			continue
		}
		query := Query{
			Cluster: each.name, Object: each.memberKey(), NeedsPods: each.item.Health == workv1alpha2.ResourceUnhealthy,
			NeedsNamespace: conditions.HasStatus(each.work.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse),
		}
		if expected <= smallFleet || query.NeedsNamespace || query.NeedsPods {
			queries = append(queries, query)
		}
	}
	return queries
}

// memberKey returns the namespace and name of the object in the Work. If the manifest cannot be decoded,
// memberKey returns those of the template.
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
