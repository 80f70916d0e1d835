package capacity

import (
	"testing"

	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestBottleneckOf(t *testing.T) {
	tests := map[string]struct {
		cluster       *clusterv1alpha1.Cluster
		requirements  *workv1alpha2.ReplicaRequirements
		want, request string
		replicas      int32
	}{
		"cpu is scarce":           {clusterWithAllocatable("cpu", "600m", "memory", "8Gi", "pods", "100"), requirementsOf("cpu", "500m", "memory", "1Gi"), "cpu", "500m", 1},
		"memory is scarce":        {clusterWithAllocatable("cpu", "60", "memory", "8Gi", "pods", "100"), requirementsOf("cpu", "500m", "memory", "5Gi"), "memory", "5Gi", 1},
		"pods are scarce":         {clusterWithAllocatable("cpu", "60", "pods", "2"), requirementsOf("cpu", "500m"), "pods", "1", 2},
		"no requirements":         {clusterWithAllocatable("pods", "7"), nil, "pods", "1", 7},
		"a resource is missing":   {clusterWithAllocatable("pods", "7"), requirementsOf("gpu", "1"), "gpu", "1", 0},
		"nothing is reported":     {&clusterv1alpha1.Cluster{}, requirementsOf("cpu", "1"), "pods", "1", 0},
		"equally scarce resource": {clusterWithAllocatable("cpu", "2", "memory", "2Gi", "pods", "100"), requirementsOf("cpu", "1", "memory", "1Gi"), "cpu", "1", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := BottleneckOf(test.cluster, test.requirements)
			if string(got.Resource) != test.want || got.Request.String() != test.request || got.Replicas != test.replicas {
				t.Errorf("got %s %s, room for %d; want %s %s, room for %d", got.Resource, &got.Request, got.Replicas, test.want, test.request, test.replicas)
			}
		})
	}
}

func TestBottleneckEqualsAvailableReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantity := rapid.SampledFrom([]string{"0", "1m", "500m", "1", "3", "1Gi", "9999999999999999999"})
		cluster := clusterWithAllocatable("cpu", quantity.Draw(t, "cpu"), "memory", quantity.Draw(t, "memory"), "pods", quantity.Draw(t, "pods"))
		requirements := requirementsOf("cpu", quantity.Draw(t, "cpu request"), "memory", quantity.Draw(t, "memory request"))
		if got, want := BottleneckOf(cluster, requirements).Replicas, availableReplicas(cluster, requirements, false); got != want {
			t.Fatalf("room for %d, want %d", got, want)
		}
	})
}
