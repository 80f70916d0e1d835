package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestClustersWithoutAPI(t *testing.T) {
	tests := map[string]struct {
		placement policyv1alpha1.Placement
		replicas  int32
		want      []string
	}{
		"a cluster with a static weight": {
			policyv1alpha1.Placement{ReplicaScheduling: staticWeight(clusterWeight(3, "a"), clusterWeight(1, "b", "c"))}, 4, []string{"b", "c"}},
		"equal weights":                    {policyv1alpha1.Placement{ReplicaScheduling: evenly}, 4, []string{"b", "c"}},
		"a share of 0 without the cluster": {policyv1alpha1.Placement{ReplicaScheduling: staticWeight(clusterWeight(9, "a"), clusterWeight(1, "b"))}, 1, []string{"b"}},
		"only clusters with a weight":      {policyv1alpha1.Placement{ReplicaScheduling: staticWeight(clusterWeight(1, "a"))}, 4, nil},
		"only selected clusters": {
			policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a", "c"), ReplicaScheduling: evenly}, 4, []string{"c"}},
		"only clusters of the affinity group in use": {policyv1alpha1.Placement{
			ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{affinityGroup("first", "c"), affinityGroup("second", "a", "b")}, ReplicaScheduling: evenly,
		}, 4, []string{"b"}},
		"duplicated workloads are always scheduled again": {policyv1alpha1.Placement{ReplicaScheduling: duplicate}, 4, nil},
		"dynamic weights":          {policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight}, 4, nil},
		"aggregated replicas":      {policyv1alpha1.Placement{ReplicaScheduling: aggregate}, 4, nil},
		"objects without replicas": {policyv1alpha1.Placement{ReplicaScheduling: evenly}, 0, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clusters := append(members("a"), member("c", withoutAPIs), member("b", withoutAPIs))
			result, err := Schedule(newInput(deployment(test.replicas, test.placement), clusters, nil))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, result.ClustersWithoutAPI); diff != "" {
				t.Errorf("clusters differ (-want +got):\n%s", diff)
			}
		})
	}
}
