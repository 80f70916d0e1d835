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
)

// resources makes a list out of pairs of a name and a quantity.
func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// interned is a list of resources that is none too long.
func interned(lists *Lists, list corev1.ResourceList) *Amounts {
	amounts, err := lists.Intern(list)
	if err != nil {
		panic(err)
	}
	return amounts
}

// kept is how much a tally keeps.
func kept(tally *Tally) map[string]int {
	nodes, pods := tally.NodeLists.Held(), tally.PodLists.Held()
	return map[string]int{
		"nodes": len(tally.nodes), "Pods": len(tally.pods),
		"lists of nodes": len(tally.NodeLists.known), "their bytes": nodes.Bytes, "their names": nodes.Names,
		"lists of Pods": len(tally.PodLists.known), "the bytes of these": pods.Bytes, "the names in these": pods.Names,
	}
}

func id(number int) PodID { return PodID{byte(number), byte(number >> 8), byte(number >> 16)} }

func TestSummary(t *testing.T) {
	tally := NewTally()
	tally.SetNode("a", true, interned(&tally.NodeLists, resources("cpu", "4", "memory", "20Gi", "pods", "10")))
	tally.SetNode("full", true, interned(&tally.NodeLists, resources("cpu", "64", "memory", "256Gi", "pods", "1")))
	tally.SetNode("b", false, interned(&tally.NodeLists, resources("cpu", "7", "memory", "5Gi", "pods", "10")))
	tally.SetNode("overcommitted", true, interned(&tally.NodeLists, resources("cpu", "1", "memory", "5Gi", "pods", "10")))
	tally.SetNode("without memory", true, interned(&tally.NodeLists, resources("cpu", "8", "pods", "10")))
	for number, pod := range []struct {
		node     string
		requests corev1.ResourceList
	}{
		{"a", resources("cpu", "500m")}, {"full", resources("cpu", "1")}, {"overcommitted", resources("cpu", "1001m")}, {"", resources("cpu", "2")},
	} {
		tally.SetPod(id(number), pod.node, interned(&tally.PodLists, pod.requests))
	}
	count, sum := tally.Summary(DefaultModels())
	if diff := cmp.Diff(&clusterv1alpha1.NodeSummary{TotalNum: 5, ReadyNum: 4}, count); diff != "" {
		t.Error(diff)
	}
	// 3.5 cores and 20Gi are free on a: grade 2. On b memory decides: grade 1. The
	// full node in between and the overcommitted one are left out and end nothing.
	// What a node lacks counts as 0.
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

// told is everything that was told of a member, as a tally that is made anew
// would be told.
type told struct {
	nodes map[string]toldNode
	pods  map[int]toldPod
}

type toldNode struct {
	ready       bool
	allocatable corev1.ResourceList
}

type toldPod struct {
	node     string
	requests corev1.ResourceList
}

func (w told) anew() *Tally {
	tally := NewTally()
	for name, node := range w.nodes {
		tally.SetNode(name, node.ready, interned(&tally.NodeLists, node.allocatable))
	}
	for number, pod := range w.pods {
		tally.SetPod(id(number), pod.node, interned(&tally.PodLists, pod.requests))
	}
	return tally
}

func TestSumsAreThoseOfATallyMadeAnewAfterAnySequenceOfEvents(t *testing.T) {
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
		tally, world := NewTally(), told{nodes: map[string]toldNode{}, pods: map[int]toldPod{}}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			name, number := rapid.SampledFrom(names).Draw(t, "node"), rapid.IntRange(0, 5).Draw(t, "pod")
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0, 1:
				node := toldNode{rapid.Bool().Draw(t, "ready"), rapid.SampledFrom(rooms).Draw(t, "room")}
				world.nodes[name] = node
				tally.SetNode(name, node.ready, interned(&tally.NodeLists, node.allocatable))
			case 2:
				delete(world.nodes, name)
				tally.RemoveNode(name)
			case 3, 4:
				pod := toldPod{rapid.SampledFrom(append(names, "")).Draw(t, "on"), rapid.SampledFrom(lists).Draw(t, "requests")}
				world.pods[number] = pod
				tally.SetPod(id(number), pod.node, interned(&tally.PodLists, pod.requests))
			case 5:
				delete(world.pods, number)
				tally.RemovePod(id(number))
			case 6:
				for other := range world.pods {
					if other != number {
						delete(world.pods, other)
					}
				}
				tally.KeepPods(func(each PodID) bool { return each == id(number) })
			}
		}
		anew := world.anew()
		wantNodes, wantSums := anew.Summary(DefaultModels())
		gotNodes, gotSums := tally.Summary(DefaultModels())
		if diff := cmp.Diff(wantNodes, gotNodes); diff != "" {
			t.Fatalf("nodes (-anew +counted):\n%s", diff)
		}
		if diff := cmp.Diff(wantSums, gotSums); diff != "" {
			t.Fatalf("sums (-anew +counted):\n%s", diff)
		}
		if diff := cmp.Diff(kept(anew), kept(tally)); diff != "" {
			t.Fatalf("what is kept (-anew +counted):\n%s", diff)
		}
	})
}

func TestAVersionGrowsOnlyWithAChange(t *testing.T) {
	tally := NewTally()
	tell := func() {
		tally.SetNode("a", true, interned(&tally.NodeLists, resources("cpu", "4")))
		tally.SetPod(id(1), "a", interned(&tally.PodLists, resources("cpu", "1")))
		tally.SetPod(id(2), "", interned(&tally.PodLists, nil))
	}
	tell()
	before := tally.Version()
	tell()
	tally.RemovePod(id(3))
	tally.RemoveNode("b")
	if after := tally.Version(); after != before {
		t.Errorf("version %d became %d though nothing changed", before, after)
	}
}

// BenchmarkTallyOfALargeMember tells what 5 000 nodes with 100 000 Pods cost: a
// summary in time, and all of it in memory.
func BenchmarkTallyOfALargeMember(b *testing.B) {
	const nodes, pods, limit = 5_000, 100_000, 30 << 20
	before := heap()
	tally := NewTally()
	for i := range nodes {
		tally.SetNode(fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/250, i%250), true,
			interned(&tally.NodeLists, resources("cpu", "16", "memory", fmt.Sprintf("%dKi", 64_000_000+i), "pods", "110", "ephemeral-storage", "100Gi", "hugepages-2Mi", "0")))
	}
	for i := range pods {
		tally.SetPod(id(i), fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i%nodes/250, i%nodes%250),
			interned(&tally.PodLists, resources("cpu", fmt.Sprintf("%dm", 100+i%400), "memory", fmt.Sprintf("%dMi", 128+i%64))))
	}
	held := heap() - before
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

// heap is what is in use after everything else was collected.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
