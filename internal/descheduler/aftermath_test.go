package descheduler

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/placement"
)

func TestSchedulerPlacesRemovedReplicas(t *testing.T) {
	tests := map[string]struct {
		unschedulable int32
		capacity      map[string]int32
		want          []workv1alpha2.TargetCluster
	}{
		"some replicas move to a cluster with capacity": {
			unschedulable: 2, capacity: map[string]int32{"m1": 0, "m2": 0, "m3": 9},
			want: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}, {Name: "m2", Replicas: 2}, {Name: "m3", Replicas: 2}},
		},
		"all replicas move, and the scheduler removes the cluster": {
			unschedulable: 5, capacity: map[string]int32{"m1": 0, "m2": 0, "m3": 9},
			want: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}, {Name: "m3", Replicas: 5}},
		},
		"the cluster with the unschedulable replicas has capacity again": {
			unschedulable: 2, capacity: map[string]int32{"m1": 9, "m2": 0, "m3": 0},
			want: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 5}, {Name: "m2", Replicas: 2}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := newBinding("web", func(b *workv1alpha2.ResourceBinding) {
				b.Status.AggregatedStatus[0] = newStatus("m1", "")
				if test.unschedulable < 5 {
					b.Status.AggregatedStatus[0] = newStatus("m1", `{"readyReplicas":3}`)
				}
			})
			lowered := binding.Copy(bound)
			lowered.BindingSpec().Clusters = lowerTargets(bound.Spec.Clusters, removalsFor(candidatesOf(bound, newCluster), map[string]int32{"m1": test.unschedulable}))
			if again := candidatesOf(lowered, newCluster); len(again) > 0 {
				t.Errorf("candidates before the scheduler has finished: %+v", again)
			}
			decision, err := placement.Decide(lowered, lowered.BindingSpec(), lowered.BindingStatus(), newCluster, placement.Features{})
			if err != nil || decision.Type != placement.ScaleSchedule {
				t.Errorf("decision %+v, error %v", decision, err)
			}
			result, err := placement.Schedule(placement.Input{
				Spec: lowered.BindingSpec(), Status: lowered.BindingStatus(), AppliedPlacement: lowered.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation],
				Clusters: servingClusters("m1", "m2", "m3"), Plugins: placement.Plugins{"*"}, Now: noon,
				EstimateReplicas: func(clusters []*clusterv1alpha1.Cluster) []int32 {
					estimates := make([]int32, len(clusters))
					for i, cluster := range clusters {
						estimates[i] = capacity.Unknown
						if count, ok := test.capacity[cluster.Name]; ok {
							estimates[i] = count
						}
					}
					return estimates
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(result.Clusters, func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) })
			if diff := cmp.Diff(test.want, result.Clusters); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}

// servingClusters returns ready clusters that serve Deployments.
func servingClusters(names ...string) []*clusterv1alpha1.Cluster {
	clusters := make([]*clusterv1alpha1.Cluster, len(names))
	for i, name := range names {
		clusters[i] = newCluster(name)
		clusters[i].Status.APIEnablements = []clusterv1alpha1.APIEnablement{
			{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		}
	}
	return clusters
}
