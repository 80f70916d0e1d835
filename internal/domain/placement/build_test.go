package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

// member returns a cluster that serves ConfigMaps and Deployments.
func member(name string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	for _, apply := range change {
		apply(cluster)
	}
	return cluster
}

func members(names ...string) []*clusterv1alpha1.Cluster {
	var clusters []*clusterv1alpha1.Cluster
	for _, name := range names {
		clusters = append(clusters, member(name))
	}
	return clusters
}

func inRegion(name string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Region = name }
}

func inZones(names ...string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = names }
}

func ofProvider(name string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Provider = name }
}

func labelled(labels map[string]string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Labels = labels }
}

func tainted(key, value string, effect corev1.TaintEffect) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func withoutAPIs(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil }

func beingRemoved(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} }

var (
	duplicate = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated,
	}
	aggregate = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}
	dynamicWeight = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{
			DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas,
		},
	}
	evenly = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
	}
)

// staticWeight returns a strategy with fixed weights.
func staticWeight(entries ...policyv1alpha1.StaticClusterWeight) *policyv1alpha1.ReplicaSchedulingStrategy {
	strategy := evenly.DeepCopy()
	strategy.WeightPreference = &policyv1alpha1.ClusterPreferences{StaticWeightList: entries}
	return strategy
}

func clusterWeight(weight int64, names ...string) policyv1alpha1.StaticClusterWeight {
	return policyv1alpha1.StaticClusterWeight{TargetCluster: *clustersNamed(names...), Weight: weight}
}

func clustersNamed(names ...string) *policyv1alpha1.ClusterAffinity {
	return &policyv1alpha1.ClusterAffinity{ClusterNames: names}
}

func affinityGroup(name string, clusters ...string) policyv1alpha1.ClusterAffinityTerm {
	return policyv1alpha1.ClusterAffinityTerm{AffinityName: name, ClusterAffinity: *clustersNamed(clusters...)}
}

func spreadBy(field policyv1alpha1.SpreadFieldValue, least, most int) policyv1alpha1.SpreadConstraint {
	return policyv1alpha1.SpreadConstraint{SpreadByField: field, MinGroups: least, MaxGroups: most}
}

func deployment(replicas int32, placement policyv1alpha1.Placement, current ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBindingSpec {
	return &workv1alpha2.ResourceBindingSpec{
		Resource:  workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"},
		Replicas:  replicas,
		Placement: &placement,
		Clusters:  current,
	}
}

// oddUID is the UID of a template for which the alphabetically last name is preferred among equal
// clusters.
const oddUID = "00000000-0000-0000-0000-000000000002"

func target(name string, replicas int32) workv1alpha2.TargetCluster {
	return workv1alpha2.TargetCluster{Name: name, Replicas: replicas}
}

// fixedEstimates returns an estimator with fixed results.
func fixedEstimates(replicas map[string]int32) func([]*clusterv1alpha1.Cluster) []int32 {
	return func(clusters []*clusterv1alpha1.Cluster) []int32 {
		estimates := make([]int32, len(clusters))
		for i, cluster := range clusters {
			estimates[i] = capacity.Unknown
			if count, ok := replicas[cluster.Name]; ok {
				estimates[i] = count
			}
		}
		return estimates
	}
}

func mustEncodePlacement(t testing.TB, placement *policyv1alpha1.Placement) string {
	t.Helper()
	applied, err := AppliedPlacement(placement)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func newInput(spec *workv1alpha2.ResourceBindingSpec, clusters []*clusterv1alpha1.Cluster, replicas map[string]int32) Input {
	return Input{Spec: spec, Status: &workv1alpha2.ResourceBindingStatus{}, Clusters: clusters, EstimateReplicas: fixedEstimates(replicas)}
}

// withRescheduleRequest adds a reschedule request that is newer than the last scheduling.
func withRescheduleRequest(in Input) Input {
	in.Spec.RescheduleTriggeredAt = &metav1.Time{Time: noon.Add(1)}
	in.Status.LastScheduledTime = &metav1.Time{Time: noon}
	return in
}

// checkSchedule calls Schedule and compares the targets and the error text.
func checkSchedule(t *testing.T, in Input, want []workv1alpha2.TargetCluster, wantError string) Result {
	t.Helper()
	result, err := Schedule(in)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != wantError {
		t.Errorf("error %q, want %q", text, wantError)
	}
	if diff := cmp.Diff(want, result.Clusters, equateEmpty); diff != "" {
		t.Errorf("targets differ (-want +got):\n%s", diff)
	}
	return result
}
