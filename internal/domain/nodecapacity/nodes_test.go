package nodecapacity

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

// expectedState is the state of a cluster, from which new Nodes are filled.
type expectedState struct {
	nodes map[string]string
	pods  map[int]expectedPod
}

type expectedPod struct{ node, request string }

func (e *expectedState) recount() *Nodes {
	cluster := NewNodes()
	for number, pod := range e.pods {
		cluster.SetPod(podID(number), pod.node, RequestOf(podWith(pod.request)))
	}
	for name, allocatable := range e.nodes {
		cluster.SetNode(node(name, allocatable))
	}
	return cluster
}

// heldState returns everything that Nodes hold.
func heldState(cluster *Nodes) map[string]any {
	columns := capacity.ResourceColumns{"cpu", "memory", "nvidia.com/gpu", "pods"}
	room := cluster.Room(columns)
	var names []string
	for _, each := range room.nodes {
		names = append(names, each.Name())
	}
	entries, pods := cluster.table.Counts()
	uses := 0
	for _, request := range cluster.requests {
		uses += request.uses
	}
	return map[string]any{"nodes": names, "free": room.free, "entries": entries, "Pods": pods, "requests": len(cluster.requests), "uses": uses}
}

func TestIncrementalSumsEqualRecount(t *testing.T) {
	names, numbers := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.IntRange(0, 5)
	allocatable := rapid.SampledFrom([]string{"cpu=4 memory=16Gi pods=10", "cpu=2 pods=2 nvidia.com/gpu=1", "memory=9E", ""})
	requests := rapid.SampledFrom([]string{"", "cpu=1", "cpu=100m memory=1Gi", "memory=9E nvidia.com/gpu=1", "cpu=9E"})
	rapid.Check(t, func(t *rapid.T) {
		cluster, world := NewNodes(), &expectedState{nodes: map[string]string{}, pods: map[int]expectedPod{}}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			name, number := names.Draw(t, "node"), numbers.Draw(t, "pod")
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0, 1:
				world.nodes[name] = allocatable.Draw(t, "allocatable")
				cluster.SetNode(node(name, world.nodes[name]))
			case 2:
				delete(world.nodes, name)
				cluster.RemoveNode(name)
			case 3, 4:
				world.pods[number] = expectedPod{names.Draw(t, "on"), requests.Draw(t, "request")}
				cluster.SetPod(podID(number), world.pods[number].node, RequestOf(podWith(world.pods[number].request)))
			case 5:
				delete(world.pods, number)
				cluster.RemovePod(podID(number))
			case 6:
				for other := range world.pods {
					if other != number {
						delete(world.pods, other)
					}
				}
				cluster.PrunePods(func(id PodID) bool { return id == podID(number) })
			case 7:
				for other := range world.nodes {
					if other != name {
						delete(world.nodes, other)
					}
				}
				cluster.PruneNodes(func(each string) bool { return each == name })
			}
		}
		if diff := cmp.Diff(heldState(world.recount()), heldState(cluster)); diff != "" {
			t.Fatalf("sums (-recount +incremental):\n%s", diff)
		}
	})
}

func TestSetsOfOneReplicaEqualReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := NewNodes()
		for i := range rapid.IntRange(0, 5).Draw(t, "nodes") {
			cluster.SetNode(node(nodeName(i), rapid.SampledFrom([]string{"cpu=4 pods=10", "cpu=9 pods=3", "cpu=1 pods=0"}).Draw(t, "allocatable")))
		}
		request := rapid.SampledFrom([]string{"cpu=1", "cpu=3", "cpu=700m", "", "cpu=10"}).Draw(t, "request")
		claim := rapid.SampledFrom([]*workv1alpha2.NodeClaim{nil, affinityTo("name", corev1.NodeSelectorOpNotIn, nodeName(0))}).Draw(t, "claim")
		components := []workv1alpha2.Component{component(1, request, claim)}
		demand := capacity.Demand{Components: components}
		sets := cluster.Room(RequestedResources(&demand, nil)).Sets(components)
		if replicas := replicasOf(cluster, requirements(request, claim)); replicas != sets {
			t.Errorf("%d replicas but %d sets", replicas, sets)
		}
	})
}

func TestRoomDoesNotChangeWithNodes(t *testing.T) {
	cluster := clusterOf([]*Node{node("a", "cpu=4 pods=10")}, nil)
	room := cluster.Room(capacity.ResourceColumns{"cpu", "pods"})
	cluster.SetPod(podID(1), "a", RequestOf(podWith("cpu=4")))
	cluster.RemoveNode("a")
	if got := room.Replicas(room.Matching(nil), list("cpu=1")); got != 4 {
		t.Errorf("%d replicas, want 4", got)
	}
}

func TestNodesCountLimitedResources(t *testing.T) {
	cluster := clusterOf([]*Node{node("a", "cpu=4 pods=10")}, nil)
	for i := range maxResources + 10 {
		cluster.SetPod(podID(i), "a", RequestOf(podWith(fmt.Sprintf("example.com/resource-%d=1", i))))
	}
	cluster.SetNode(node("b", "cpu=4 pods=10 example.com/new=1"))
	if len(cluster.positions) != maxResources {
		t.Errorf("%d resources are counted, want %d", len(cluster.positions), maxResources)
	}
	if got := replicasOf(cluster, requirements("example.com/new=1", nil)); got != 0 {
		t.Errorf("%d replicas request a resource that is not counted", got)
	}
	if got := replicasOf(cluster, requirements("cpu=1", nil)); got != 4 {
		t.Errorf("%d replicas fit onto the node without Pods, want 4", got)
	}
}

func FuzzTotal(f *testing.F) {
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, a, b, c int64) {
		a, b, c = max(a, 0), max(b, 0), max(c, 0)
		sum := total{}.plus(a).plus(b).plus(c)
		if got := sum.minus(a).minus(c); got != (total{}.plus(b)) {
			t.Errorf("%v, want %d", got, b)
		}
		if remaining := sum.remaining(math.MaxInt64); remaining < 0 || remaining != max(0, capacity.SaturatingSubtract(capacity.SaturatingSubtract(capacity.SaturatingSubtract(math.MaxInt64, a), b), c)) {
			t.Errorf("%d remain", remaining)
		}
	})
}

// largeCluster returns a cluster of 5,000 nodes with 100,000 Pods.
func largeCluster() *Nodes {
	const nodes, pods = 5_000, 100_000
	cluster := NewNodes()
	for i := range nodes {
		labeled := node(nodeName(i), "cpu=64 memory=256Gi pods=110 ephemeral-storage=100Gi hugepages-2Mi=0", func(n *corev1.Node) {
			n.Labels = map[string]string{
				corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelInstanceTypeStable: "m5.16xlarge",
				corev1.LabelTopologyZone: []string{"a", "b", "c"}[i%3], corev1.LabelTopologyRegion: "eu-central-1", "node.example.com/pool": "general",
			}
		})
		cluster.SetNode(labeled)
	}
	requests := make([]Request, 400)
	for i := range requests {
		requests[i] = RequestOf(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("memory=128Mi")}, Overhead: list([]string{"cpu=100m", "cpu=1", "cpu=250m"}[i%3])}})
	}
	for i := range pods {
		cluster.SetPod(podID(i), nodeName(i%nodes), requests[i%len(requests)])
	}
	return cluster
}

func heapBytes() uint64 {
	runtime.GC()
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkLargeCluster measures the time of estimates and the memory of a cluster for 5,000 nodes
// with 100,000 Pods.
func BenchmarkLargeCluster(b *testing.B) {
	before := heapBytes()
	cluster := largeCluster()
	held := heapBytes() - before
	zone := affinityTo(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "a", "b")
	zone.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
	zone.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	replicas := map[string]struct {
		requirements *workv1alpha2.ReplicaRequirements
		assumed      []capacity.AssumedWorkload
	}{
		"replicas": {requirements: requirements("cpu=500m memory=1Gi", nil)},
		"replicas with an affinity and tolerations": {requirements: requirements("cpu=500m memory=1Gi", zone)},
		"replicas with 20 assumed workloads": {requirements("cpu=500m memory=1Gi", nil), slices.Repeat([]capacity.AssumedWorkload{
			{Components: []workv1alpha2.Component{component(100, "cpu=2 memory=1Gi")}},
		}, 20)},
	}
	for name, each := range replicas {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				replicasOf(cluster, each.requirements, each.assumed...)
			}
			b.ReportMetric(float64(held)/(1<<20), "MiB-held")
		})
	}
	components := []workv1alpha2.Component{component(1, "cpu=1 memory=1Gi"), component(3, "cpu=4 memory=8Gi", zone)}
	b.Run("sets of two components", func(b *testing.B) {
		demand := capacity.Demand{Components: components}
		for b.Loop() {
			cluster.Room(RequestedResources(&demand, nil)).Sets(components)
		}
	})
	b.Run("update of a Pod", func(b *testing.B) {
		first, second, i := RequestOf(podWith("cpu=1")), RequestOf(podWith("cpu=2")), 0
		for b.Loop() {
			i++
			cluster.SetPod(podID(i%1000), nodeName(i%5000), []Request{first, second}[i%2])
		}
	})
}
