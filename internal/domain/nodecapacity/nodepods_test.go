package nodecapacity

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// newSummingTable returns a table that keeps the sum of the requests of each node, and the sums by
// name. The sum of the Pods without a node has the empty name.
func newSummingTable() (table *PodTable[int, int], sums map[string]int) {
	sums = map[string]int{}
	add := func(sign int) PodFunc[int, int] {
		return func(node *NodePods[int], request int) {
			name := ""
			if node != nil {
				name = node.Name
				node.State += sign * request
			}
			sums[name] += sign * request
		}
	}
	return NewPodTable(add(1), add(-1)), sums
}

type placedPod struct {
	node    string
	request int
}

func TestSumsEqualRecount(t *testing.T) {
	names := []string{"", "a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		table, sums := newSummingTable()
		nodes, pods := map[string]bool{}, map[PodID]placedPod{}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			name, id := rapid.SampledFrom(names).Draw(t, "node"), PodID{rapid.Byte().Draw(t, "pod") % 5}
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				if name != "" {
					_, isNew := table.AddNode(name)
					if isNew == nodes[name] {
						t.Fatalf("isNew is %t for node %s", isNew, name)
					}
					nodes[name] = true
				}
			case 1:
				if node := table.FindNode(name); node != nil {
					table.RemoveNode(node)
				}
				delete(nodes, name)
			case 2, 3:
				pod, before := placedPod{name, rapid.IntRange(0, 3).Draw(t, "request")}, pods[id]
				_, isKnown := pods[id]
				if changed := table.SetPod(id, pod.node, pod.request); changed != (!isKnown || before != pod) {
					t.Fatalf("changed is %t for %v after %v", changed, pod, before)
				}
				pods[id] = pod
			case 4:
				_, isKnown := pods[id]
				if removed := table.RemovePod(id); removed != isKnown {
					t.Fatalf("removed is %t for a Pod that the table has: %t", removed, isKnown)
				}
				delete(pods, id)
			case 5:
				table.PrunePods(func(other PodID) bool { return other == id })
				maps.DeleteFunc(pods, func(other PodID, _ placedPod) bool { return other != id })
			}
		}
		verifyTable(t, table, sums, nodes, pods)
	})
}

func verifyTable(t *rapid.T, table *PodTable[int, int], sums map[string]int, nodes map[string]bool, pods map[PodID]placedPod) {
	wantSums, entries := map[string]int{}, maps.Clone(nodes)
	for _, pod := range pods {
		wantSums[pod.node] += pod.request
		if pod.node != "" {
			entries[pod.node] = true
		}
	}
	maps.DeleteFunc(sums, func(_ string, sum int) bool { return sum == 0 })
	maps.DeleteFunc(wantSums, func(_ string, sum int) bool { return sum == 0 })
	if diff := cmp.Diff(wantSums, sums); diff != "" {
		t.Fatalf("sums (-recount +incremental):\n%s", diff)
	}
	if nodeCount, podCount := table.Counts(); nodeCount != len(entries) || podCount != len(pods) {
		t.Fatalf("%d nodes and %d Pods, want %d and %d", nodeCount, podCount, len(entries), len(pods))
	}
	var existing []string
	for node := range table.Nodes() {
		existing = append(existing, node.Name)
		if node.State != wantSums[node.Name] {
			t.Fatalf("node %s has the sum %d, want %d", node.Name, node.State, wantSums[node.Name])
		}
	}
	slices.Sort(existing)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(nodes)), existing); diff != "" {
		t.Fatalf("existing nodes (-want +got):\n%s", diff)
	}
}

// TestSharedRequestKeepsAReference checks the order in which a Pod moves: a reference count that the
// owner keeps must not become 0 while the Pod still has the request.
func TestSharedRequestKeepsAReference(t *testing.T) {
	references, lowest := 0, 1
	table := NewPodTable(
		func(*NodePods[int], string) { references++ },
		func(*NodePods[int], string) { references--; lowest = min(lowest, references) },
	)
	table.SetPod(PodID{1}, "a", "cpu=1")
	table.SetPod(PodID{1}, "b", "cpu=1")
	if references != 1 || lowest != 1 {
		t.Errorf("%d references, at least %d, want 1 at any time", references, lowest)
	}
	if nodes, pods := table.Counts(); nodes != 1 || pods != 1 {
		t.Errorf("%d nodes and %d Pods, want only node b with its Pod", nodes, pods)
	}
}

func TestIDsOfDifferentPodsDiffer(t *testing.T) {
	ids := map[PodID]bool{}
	for _, uid := range []types.UID{"", "a", "b", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"} {
		ids[PodIDOf(uid)] = true
	}
	if len(ids) != 4 {
		t.Errorf("%d IDs for 4 UIDs", len(ids))
	}
}
