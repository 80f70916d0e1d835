package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestExplain(t *testing.T) {
	tests := map[string]struct {
		in   Input
		want []Exclusion
	}{
		"a cluster with a taint": {
			newInput(deployment(2, policyv1alpha1.Placement{}), append(members("a"), member("b", tainted("gpu", "only", corev1.TaintEffectNoSchedule))), nil),
			[]Exclusion{{Cluster: "b", Step: StepFilter, Plugin: PluginTaintToleration, Reason: "untolerated taint {gpu=only:NoSchedule}"}},
		},
		"a cluster that does not serve the kind": {
			newInput(deployment(2, policyv1alpha1.Placement{}), append(members("a"), member("b", withoutAPIs)), nil),
			[]Exclusion{{Cluster: "b", Step: StepFilter, Plugin: PluginAPIEnablement, Reason: "does not serve apps/v1 Deployment"}},
		},
		"clusters that the affinity does not select": {
			newInput(deployment(2, policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a")}), append(members("a", "b"), member("c", beingRemoved)), nil),
			[]Exclusion{
				{Cluster: "b", Step: StepFilter, Plugin: PluginClusterAffinity, Reason: "not selected by the cluster affinity"},
				{Cluster: "c", Step: StepFilter, Plugin: PluginClusterAffinity, Reason: "not selected by the cluster affinity"},
			},
		},
		"a terminating cluster": {
			newInput(deployment(2, policyv1alpha1.Placement{}), append(members("a"), member("b", beingRemoved)), nil),
			[]Exclusion{{Cluster: "b", Step: StepFilter, Reason: "being removed"}},
		},
		"a cluster that the spread constraints leave out": {
			newInput(deployment(2, policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}}), members("a", "b"), nil),
			[]Exclusion{{
				Cluster: "b", Step: StepSelect, Plugin: PluginSpreadConstraint,
				Reason: "fits, but the spread constraints select 1 of 2 clusters, and others are preferred",
			}},
		},
		"a cluster without capacity": {
			newInput(deployment(2, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight}), members("a", "b"), map[string]int32{"a": 5, "b": 0}),
			[]Exclusion{{Cluster: "b", Step: StepAssignReplicas, Reason: "fits, but its share is 0 replicas: room for 0", NeedsCapacity: true}},
		},
		"a cluster with room while the current shares stay": {
			newInput(deployment(2, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight}, target("a", 2)), members("a", "b"), map[string]int32{"a": 5, "b": 7}),
			[]Exclusion{{Cluster: "b", Step: StepAssignReplicas, Reason: "fits and has room for 7, but the replicas stay in their clusters until they are divided again"}},
		},
		"a cluster without a weight": {
			newInput(deployment(2, policyv1alpha1.Placement{ReplicaScheduling: staticWeight(clusterWeight(1, "a"))}), members("a", "b"), nil),
			[]Exclusion{{Cluster: "b", Step: StepAssignReplicas, Reason: "fits, but its share is 0 replicas"}},
		},
		"too little capacity in all clusters": {
			newInput(deployment(5, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight}), members("a"), map[string]int32{"a": 1}),
			[]Exclusion{{
				Cluster: "a", Step: StepAssignReplicas, NeedsCapacity: true,
				Reason: "passes the filters, but the clusters that fit do not suffice: 5 replicas wanted, room for 1",
			}},
		},
		"a spread constraint that cannot be met": {
			newInput(deployment(2, policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 2, 2)}}), members("a"), nil),
			[]Exclusion{{Cluster: "a", Step: StepSelect, Reason: "passes the filters, but the clusters that fit do not suffice"}},
		},
		"the second affinity group": {
			newInput(deployment(2, policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
				affinityGroup("first", "nowhere"), affinityGroup("second", "b"),
			}}), members("a", "b"), nil),
			[]Exclusion{{Cluster: "a", Step: StepFilter, Plugin: PluginClusterAffinity, Reason: "not selected by the cluster affinity"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Explain(test.in).Exclusions); diff != "" {
				t.Errorf("exclusions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainCoversEveryCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		want, wantErr := Schedule(in)
		got := Explain(in)
		if diff := cmp.Diff(want.Clusters, got.Result.Clusters); diff != "" || errorText(wantErr) != errorText(got.Err) {
			t.Fatalf("another result than Schedule: %s, error %v, want %v", diff, got.Err, wantErr)
		}
		explained := sets.New[string]()
		for _, target := range got.Result.Clusters {
			explained.Insert(target.Name)
		}
		for _, exclusion := range got.Exclusions {
			if explained.Has(exclusion.Cluster) || exclusion.Reason == "" {
				t.Fatalf("wrong exclusion %+v in %+v", exclusion, got)
			}
			explained.Insert(exclusion.Cluster)
		}
		for _, cluster := range in.Clusters {
			if !explained.Has(cluster.Name) {
				t.Fatalf("no reason for cluster %s: %+v", cluster.Name, got)
			}
		}
	})
}
