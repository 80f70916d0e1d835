package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Bottleneck is the resource that limits how many more replicas fit into a cluster.
type Bottleneck struct {
	Resource corev1.ResourceName
	// Request is the amount that one replica requests.
	Request resource.Quantity
	// Replicas is how many more replicas fit. It equals the result of Demand.Counter without
	// models.
	Replicas int32
}

// BottleneckOf returns the resource with room for the fewest replicas, according to the sums over all
// nodes in the status of the Cluster. If several resources have room for equally few replicas, Pods
// are the Bottleneck, or else the resource whose name is first in the alphabet.
func BottleneckOf(cluster *clusterv1alpha1.Cluster, requirements *workv1alpha2.ReplicaRequirements) Bottleneck {
	summary := cluster.Status.ResourceSummary
	least := freePods(summary)
	found := Bottleneck{Resource: corev1.ResourcePods, Request: *resource.NewQuantity(1, resource.DecimalSI)}
	if requirements != nil && summary != nil {
		request := ResourceAmounts(requirements.ResourceRequest)
		for _, name := range slices.Sorted(maps.Keys(request)) {
			if fits := freeAmount(summary, name) / request[name]; fits < least {
				least = fits
				found.Resource, found.Request = name, requirements.ResourceRequest[name]
			}
		}
	}
	found.Replicas = ClampToInt32(least)
	return found
}
