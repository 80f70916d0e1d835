package nodecapacity

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

// list returns resources from a text such as "cpu=1 memory=2Gi".
func list(text string) corev1.ResourceList {
	resources := corev1.ResourceList{}
	for field := range strings.FieldsSeq(text) {
		name, quantity, _ := strings.Cut(field, "=")
		resources[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return resources
}

func node(name, allocatable string, change ...func(*corev1.Node)) *Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}, Status: corev1.NodeStatus{Allocatable: list(allocatable)}}
	for _, each := range change {
		each(n)
	}
	return NewNode(n)
}

func tainted(taints ...corev1.Taint) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, taints...) }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func container(requests string) corev1.Container {
	return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: list(requests)}}
}

func podWith(requests string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container(requests)}}}
}

func podID(number int) PodID {
	return PodID{byte(number), byte(number >> 8), byte(number >> 16)}
}

// clusterOf returns Nodes with these nodes, and with Pods by the name of their node.
func clusterOf(nodes []*Node, pods map[string][]string) *Nodes {
	cluster, number := NewNodes(), 0
	for _, each := range nodes {
		cluster.SetNode(each)
	}
	for on, requests := range pods {
		for _, request := range requests {
			number++
			cluster.SetPod(podID(number), on, RequestOf(podWith(request)))
		}
	}
	return cluster
}

func requirements(request string, claim *workv1alpha2.NodeClaim) *workv1alpha2.ReplicaRequirements {
	return &workv1alpha2.ReplicaRequirements{ResourceRequest: list(request), NodeClaim: claim}
}

func component(replicas int32, request string, claim ...*workv1alpha2.NodeClaim) workv1alpha2.Component {
	c := workv1alpha2.Component{Replicas: replicas, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: list(request)}}
	for _, each := range claim {
		c.ReplicaRequirements.NodeClaim = each
	}
	return c
}

// replicasOf returns the estimate for a cluster.
func replicasOf(cluster *Nodes, requirements *workv1alpha2.ReplicaRequirements, assumed ...capacity.AssumedWorkload) int32 {
	demand := capacity.Demand{Requirements: requirements}
	room := cluster.Room(RequestedResources(&demand, assumed))
	for i := range assumed {
		room.Place(&assumed[i])
	}
	if requirements == nil {
		return room.Replicas(room.Matching(nil), nil)
	}
	return room.Replicas(room.Matching(requirements.NodeClaim), requirements.ResourceRequest)
}

func affinityTo(key string, operator corev1.NodeSelectorOperator, values ...string) *workv1alpha2.NodeClaim {
	return &workv1alpha2.NodeClaim{HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	}}}}
}

func tolerating(tolerations ...corev1.Toleration) *workv1alpha2.NodeClaim {
	return &workv1alpha2.NodeClaim{Tolerations: tolerations}
}

func TestReplicas(t *testing.T) {
	large := "cpu=4 memory=16Gi pods=10"
	noSchedule := corev1.Taint{Key: "k", Value: "5", Effect: corev1.TaintEffectNoSchedule}
	tests := map[string]struct {
		nodes        []*Node
		pods         map[string][]string
		requirements *workv1alpha2.ReplicaRequirements
		assumed      []capacity.AssumedWorkload
		want         int32
	}{
		"a cluster without nodes has no capacity":  {want: 0},
		"without requirements only Pods limit":     {nodes: []*Node{node("a", large), node("b", large)}, want: 20},
		"a node without Pods has no capacity":      {nodes: []*Node{node("a", "cpu=4")}, want: 0},
		"remainders of nodes do not add up":        {nodes: []*Node{node("a", large), node("b", large)}, requirements: requirements("cpu=3", nil), want: 2},
		"requests of Pods are subtracted":          {nodes: []*Node{node("a", large)}, pods: map[string][]string{"a": {"cpu=1500m", "memory=1Gi"}}, requirements: requirements("cpu=1", nil), want: 2},
		"Pods are subtracted":                      {nodes: []*Node{node("a", large)}, pods: map[string][]string{"a": {"", ""}}, requirements: requirements("cpu=1m", nil), want: 8},
		"an overcommitted node has no capacity":    {nodes: []*Node{node("a", large)}, pods: map[string][]string{"a": {"cpu=9"}}, requirements: requirements("cpu=1m", nil), want: 0},
		"Pods on unknown nodes do not count":       {nodes: []*Node{node("a", large)}, pods: map[string][]string{"b": {"cpu=4"}}, requirements: requirements("cpu=1", nil), want: 4},
		"a resource that no node has":              {nodes: []*Node{node("a", large)}, requirements: requirements("nvidia.com/gpu=1", nil), want: 0},
		"a request of 0 needs no resource":         {nodes: []*Node{node("a", large)}, requirements: requirements("nvidia.com/gpu=0", nil), want: 10},
		"other names do not limit":                 {nodes: []*Node{node("a", large)}, requirements: requirements("cpu=1 limits.cpu=100 storage=1Ti", nil), want: 4},
		"huge quantities do not overflow":          {nodes: []*Node{node("a", "cpu=9E pods=10 memory=1e25"), node("b", large)}, pods: map[string][]string{"b": {"memory=9E", "memory=9E", "memory=9E"}}, requirements: requirements("memory=1e25", nil), want: 1},
		"an affinity selects nodes":                {nodes: []*Node{node("a", large), node("b", large)}, requirements: requirements("cpu=1", affinityTo("name", corev1.NodeSelectorOpIn, "b")), want: 4},
		"an invalid affinity matches no node":      {nodes: []*Node{node("a", large)}, requirements: requirements("cpu=1", affinityTo("name", "Like", "a")), want: 0},
		"an affinity without terms matches none":   {nodes: []*Node{node("a", large)}, requirements: requirements("cpu=1", &workv1alpha2.NodeClaim{HardNodeAffinity: &corev1.NodeSelector{}}), want: 0},
		"a node selector selects nodes":            {nodes: []*Node{node("a", large), node("b", large)}, requirements: requirements("cpu=1", &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"name": "a"}}), want: 4},
		"a field selects a node":                   {nodes: []*Node{node("a", large), node("b", large)}, requirements: requirements("cpu=1", &workv1alpha2.NodeClaim{HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}}}}}), want: 4},
		"a cordoned node is excluded":              {nodes: []*Node{node("a", large, cordoned)}, requirements: requirements("cpu=1", nil), want: 0},
		"a cordoned node may be tolerated":         {nodes: []*Node{node("a", large, cordoned)}, requirements: requirements("cpu=1", tolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})), want: 4},
		"a tainted node is excluded":               {nodes: []*Node{node("a", large, tainted(noSchedule))}, want: 0},
		"a taint may be tolerated":                 {nodes: []*Node{node("a", large, tainted(noSchedule))}, requirements: requirements("cpu=1", tolerating(corev1.Toleration{Key: "k", Value: "5"})), want: 4},
		"comparisons tolerate no taint":            {nodes: []*Node{node("a", large, tainted(noSchedule))}, requirements: requirements("cpu=1", tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpLt, Value: "9"})), want: 0},
		"a preference does not exclude a node":     {nodes: []*Node{node("a", large, tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule}))}, requirements: requirements("cpu=1", nil), want: 4},
		"assumed workloads take their place first": {nodes: []*Node{node("a", large), node("b", large)}, assumed: []capacity.AssumedWorkload{{Components: []workv1alpha2.Component{component(2, "cpu=1"), component(1, "cpu=3")}}}, requirements: requirements("cpu=1", nil), want: 3},
		"an assumed workload that does not fit":    {nodes: []*Node{node("a", large)}, assumed: []capacity.AssumedWorkload{{Components: []workv1alpha2.Component{component(3, "cpu=2")}}, {Components: []workv1alpha2.Component{component(1, "memory=8Gi")}}}, requirements: requirements("memory=2Gi", nil), want: 4},
		"assumed workloads respect claims":         {nodes: []*Node{node("a", large), node("b", large)}, assumed: []capacity.AssumedWorkload{{Components: []workv1alpha2.Component{component(1, "cpu=4", affinityTo("name", corev1.NodeSelectorOpIn, "b"))}}}, requirements: requirements("cpu=1", affinityTo("name", corev1.NodeSelectorOpIn, "b")), want: 0},
		"many small replicas saturate":             {nodes: []*Node{node("a", "cpu=9E pods=9E"), node("b", "cpu=9E pods=9E")}, requirements: requirements("cpu=1m", nil), want: math.MaxInt32},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := replicasOf(clusterOf(test.nodes, test.pods), test.requirements, test.assumed...); got != test.want {
				t.Errorf("%d replicas, want %d", got, test.want)
			}
		})
	}
}

func TestSets(t *testing.T) {
	nodes := []*Node{node("a", "cpu=4 pods=10"), node("b", "cpu=2 pods=10"), node("c", "cpu=8 pods=10", cordoned)}
	tests := map[string]struct {
		nodes      []*Node
		components []workv1alpha2.Component
		want       int32
	}{
		"no nodes":                                 {nil, []workv1alpha2.Component{component(1, "cpu=1")}, 0},
		"no replicas":                              {nodes, []workv1alpha2.Component{component(0, "cpu=1")}, Unlimited},
		"a component without requirements":         {nodes, []workv1alpha2.Component{{Replicas: 3}}, 6},
		"sets of one component":                    {nodes, []workv1alpha2.Component{component(1, "cpu=1")}, 6},
		"a set that needs two nodes":               {nodes, []workv1alpha2.Component{component(1, "cpu=3"), component(1, "cpu=2")}, 1},
		"a component that fits nowhere":            {nodes, []workv1alpha2.Component{component(1, "cpu=1"), component(1, "cpu=5")}, 0},
		"a component may use nodes of its own":     {nodes, []workv1alpha2.Component{component(1, "cpu=1"), component(1, "cpu=5", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}))}, 1},
		"a negative number of replicas counts 0":   {nodes, []workv1alpha2.Component{component(-1, "cpu=1"), component(1, "cpu=2")}, 3},
		"a component restricted to one node":       {nodes, []workv1alpha2.Component{component(1, "cpu=1", affinityTo("name", corev1.NodeSelectorOpIn, "b"))}, 2},
		"more replicas than int32 do not overflow": {nodes, []workv1alpha2.Component{component(math.MaxInt32, "cpu=9E"), component(math.MaxInt32, "cpu=9E")}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			demand := capacity.Demand{Components: test.components}
			room := clusterOf(test.nodes, nil).Room(RequestedResources(&demand, nil))
			if got := room.Sets(test.components); got != test.want {
				t.Errorf("%d sets, want %d", got, test.want)
			}
		})
	}
}

func TestRequestedResources(t *testing.T) {
	demand := capacity.Demand{Requirements: requirements("cpu=1 limits.cpu=1", nil), Components: []workv1alpha2.Component{component(1, "memory=1"), {}}}
	assumed := []capacity.AssumedWorkload{{Components: []workv1alpha2.Component{component(1, "nvidia.com/gpu=1")}}}
	if diff := cmp.Diff(capacity.ResourceColumns{"cpu", "memory", "nvidia.com/gpu", "pods"}, RequestedResources(&demand, assumed)); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestRequestOf(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("cpu=200m")
	sidecar.RestartPolicy = &always
	resized := podWith("cpu=1")
	resized.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: list("cpu=3"), Resources: &corev1.ResourceRequirements{Requests: list("cpu=3")}}}
	tests := map[string]struct {
		pod  *corev1.Pod
		want map[corev1.ResourceName]int64
	}{
		"no requests":                        {podWith(""), map[corev1.ResourceName]int64{}},
		"the sum of containers":              {&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("cpu=1"), container("cpu=500m memory=1Ki")}}}, map[corev1.ResourceName]int64{"cpu": 1500, "memory": 1024}},
		"a larger init container":            {&corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{container("cpu=2")}, Containers: []corev1.Container{container("cpu=1")}}}, map[corev1.ResourceName]int64{"cpu": 2000}},
		"a sidecar runs with the containers": {&corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container("cpu=1")}}}, map[corev1.ResourceName]int64{"cpu": 1200}},
		"the overhead is added":              {&corev1.Pod{Spec: corev1.PodSpec{Overhead: list("cpu=100m"), Containers: []corev1.Container{container("cpu=1")}}}, map[corev1.ResourceName]int64{"cpu": 1100}},
		"requests of the whole Pod":          {&corev1.Pod{Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: list("cpu=3")}, Containers: []corev1.Container{container("cpu=1")}}}, map[corev1.ResourceName]int64{"cpu": 3000}},
		"a resize in progress":               {resized, map[corev1.ResourceName]int64{"cpu": 3000}},
		"names that nodes do not have":       {podWith("cpu=1 storage=5 pods=7"), map[corev1.ResourceName]int64{"cpu": 1000}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, RequestOf(test.pod).amounts); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func nodeName(number int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", number/250, number%250)
}
