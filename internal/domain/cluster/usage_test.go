package cluster

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/nodecapacity"
)

// resources returns the resource list for pairs of a name and a quantity.
func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// mustIntern interns a resource list and panics on an error.
func mustIntern(lists *ResourceListPool, list corev1.ResourceList) *InternedResources {
	amounts, err := lists.Intern(list)
	if err != nil {
		panic(err)
	}
	return amounts
}

// heldCounts returns the number of entries of each kind in the counter.
func heldCounts(tally *UsageCounter) map[string]int {
	nodes, pods := tally.NodeLists.HeldSize(), tally.PodLists.HeldSize()
	nodeCount, podCount := tally.Counts()
	return map[string]int{
		"nodes": nodeCount, "Pods": podCount,
		"lists of nodes": len(tally.NodeLists.byText), "their bytes": nodes.Bytes, "their names": nodes.Names,
		"lists of Pods": len(tally.PodLists.byText), "the bytes of these": pods.Bytes, "the names in these": pods.Names,
	}
}

func podID(number int) nodecapacity.PodID {
	return nodecapacity.PodID{byte(number), byte(number >> 8), byte(number >> 16)}
}

func TestSummary(t *testing.T) {
	tally := NewUsageCounter()
	tally.SetNode("a", true, mustIntern(&tally.NodeLists, resources("cpu", "4", "memory", "20Gi", "pods", "10")))
	tally.SetNode("full", true, mustIntern(&tally.NodeLists, resources("cpu", "64", "memory", "256Gi", "pods", "1")))
	tally.SetNode("b", false, mustIntern(&tally.NodeLists, resources("cpu", "7", "memory", "5Gi", "pods", "10")))
	tally.SetNode("overcommitted", true, mustIntern(&tally.NodeLists, resources("cpu", "1", "memory", "5Gi", "pods", "10")))
	tally.SetNode("without memory", true, mustIntern(&tally.NodeLists, resources("cpu", "8", "pods", "10")))
	for number, pod := range []struct {
		node     string
		requests corev1.ResourceList
	}{
		{"a", resources("cpu", "500m")}, {"full", resources("cpu", "1")}, {"overcommitted", resources("cpu", "1001m")}, {"", resources("cpu", "2")},
	} {
		tally.SetPod(podID(number), pod.node, mustIntern(&tally.PodLists, pod.requests))
	}
	count, sum := tally.Summary(DefaultModels())
	if diff := cmp.Diff(&clusterv1alpha1.NodeSummary{TotalNum: 5, ReadyNum: 4}, count); diff != "" {
		t.Error(diff)
	}
	// Node a has 3.5 free cores and 20Gi free memory, so its grade is 2. Node b's grade is 1, because
	// of its memory. The full node and the overcommitted node are not counted. A missing resource
	// counts as 0.
	grades := map[uint]int{}
	for _, modeling := range sum.AllocatableModelings {
		if modeling.Count > 0 {
			grades[modeling.Grade] = modeling.Count
		}
	}
	if diff := cmp.Diff(map[uint]int{0: 1, 1: 1, 2: 1}, grades); diff != "" || len(sum.AllocatableModelings) != 9 {
		t.Errorf("grades (-want +got):\n%s", diff)
	}
	sum.AllocatableModelings = nil
	want := &clusterv1alpha1.ResourceSummary{
		Allocatable: resources("cpu", "84", "memory", "286Gi", "pods", "41"),
		Allocated:   resources("cpu", "2501m", "pods", "3"),
		Allocating:  resources("cpu", "2", "pods", "1"),
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

// expectedState is a member's state, from which a new counter is filled.
type expectedState struct {
	nodes map[string]expectedNode
	pods  map[int]expectedPod
}

type expectedNode struct {
	ready       bool
	allocatable corev1.ResourceList
}

type expectedPod struct {
	node     string
	requests corev1.ResourceList
}

func (e expectedState) recount() *UsageCounter {
	tally := NewUsageCounter()
	for name, node := range e.nodes {
		tally.SetNode(name, node.ready, mustIntern(&tally.NodeLists, node.allocatable))
	}
	for number, pod := range e.pods {
		tally.SetPod(podID(number), pod.node, mustIntern(&tally.PodLists, pod.requests))
	}
	return tally
}

func TestIncrementalSumsEqualRecount(t *testing.T) {
	lists := []corev1.ResourceList{
		{}, resources("cpu", "1"), resources("cpu", "100m", "memory", "1Gi"), resources("memory", "500M"),
		resources("cpu", "3n", "nvidia.com/gpu", "2"), resources("cpu", "9223372036854775807", "memory", "9Ei"),
	}
	rooms := []corev1.ResourceList{
		resources("cpu", "4", "memory", "16Gi", "pods", "3"), resources("cpu", "64", "memory", "256Gi", "pods", "110", "nvidia.com/gpu", "8"),
		resources("pods", "1"), {},
	}
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		tally, world := NewUsageCounter(), expectedState{nodes: map[string]expectedNode{}, pods: map[int]expectedPod{}}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			name, number := rapid.SampledFrom(names).Draw(t, "node"), rapid.IntRange(0, 5).Draw(t, "pod")
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0, 1:
				node := expectedNode{rapid.Bool().Draw(t, "ready"), rapid.SampledFrom(rooms).Draw(t, "room")}
				world.nodes[name] = node
				tally.SetNode(name, node.ready, mustIntern(&tally.NodeLists, node.allocatable))
			case 2:
				delete(world.nodes, name)
				tally.RemoveNode(name)
			case 3, 4:
				pod := expectedPod{rapid.SampledFrom(append(names, "")).Draw(t, "on"), rapid.SampledFrom(lists).Draw(t, "requests")}
				world.pods[number] = pod
				tally.SetPod(podID(number), pod.node, mustIntern(&tally.PodLists, pod.requests))
			case 5:
				delete(world.pods, number)
				tally.RemovePod(podID(number))
			case 6:
				for other := range world.pods {
					if other != number {
						delete(world.pods, other)
					}
				}
				tally.PrunePods(func(each nodecapacity.PodID) bool { return each == podID(number) })
			}
		}
		recounted := world.recount()
		wantNodes, wantSums := recounted.Summary(DefaultModels())
		gotNodes, gotSums := tally.Summary(DefaultModels())
		if diff := cmp.Diff(wantNodes, gotNodes); diff != "" {
			t.Fatalf("nodes (-recount +incremental):\n%s", diff)
		}
		if diff := cmp.Diff(wantSums, gotSums); diff != "" {
			t.Fatalf("sums (-recount +incremental):\n%s", diff)
		}
		if diff := cmp.Diff(heldCounts(recounted), heldCounts(tally)); diff != "" {
			t.Fatalf("held sizes (-recount +incremental):\n%s", diff)
		}
	})
}

func TestVersionChangesOnlyWithContent(t *testing.T) {
	tally := NewUsageCounter()
	tell := func() {
		tally.SetNode("a", true, mustIntern(&tally.NodeLists, resources("cpu", "4")))
		tally.SetPod(podID(1), "a", mustIntern(&tally.PodLists, resources("cpu", "1")))
		tally.SetPod(podID(2), "", mustIntern(&tally.PodLists, nil))
	}
	tell()
	before := tally.Version()
	tell()
	tally.RemovePod(podID(3))
	tally.RemoveNode("b")
	if after := tally.Version(); after != before {
		t.Errorf("version %d became %d though nothing changed", before, after)
	}
}

// BenchmarkUsageOfLargeMember measures the duration of a summary and the memory of a counter for 5,000
// nodes with 100,000 Pods.
func BenchmarkUsageOfLargeMember(b *testing.B) {
	const nodes, pods, limit = 5_000, 100_000, 30 << 20
	before := heapBytes()
	tally := NewUsageCounter()
	for i := range nodes {
		tally.SetNode(fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/250, i%250), true,
			mustIntern(&tally.NodeLists, resources("cpu", "16", "memory", fmt.Sprintf("%dKi", 64_000_000+i), "pods", "110", "ephemeral-storage", "100Gi", "hugepages-2Mi", "0")))
	}
	for i := range pods {
		tally.SetPod(podID(i), fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i%nodes/250, i%nodes%250),
			mustIntern(&tally.PodLists, resources("cpu", fmt.Sprintf("%dm", 100+i%400), "memory", fmt.Sprintf("%dMi", 128+i%64))))
	}
	held := heapBytes() - before
	if held > limit {
		b.Errorf("%d MiB for %d nodes and %d Pods", held>>20, nodes, pods)
	}
	models := DefaultModels()
	for b.Loop() {
		tally.Summary(models)
	}
	b.ReportMetric(float64(held)/(1<<20), "MiB")
	runtime.KeepAlive(tally)
}

// heapBytes returns the memory in use after a garbage collection.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
