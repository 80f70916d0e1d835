package scheduler

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func clusterNames(s *snapshot) []string {
	var list []string
	for _, cluster := range s.clusters {
		list = append(list, cluster.Name)
	}
	return list
}

func TestSnapshotsAreSortedCompleteAndImmutable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newClusterSnapshots()
		model := map[string]*clusterv1alpha1.Cluster{}
		type kept struct {
			bound *snapshot
			names []string
		}
		var snapshots []kept
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			name := rapid.StringMatching(`[a-e]`).Draw(t, "name")
			if rapid.Bool().Draw(t, "remove") {
				w.remove(name)
				delete(model, name)
			} else {
				cluster := member(name)
				w.put(cluster, false)
				model[name] = cluster
			}
			now := w.snapshot()
			snapshots = append(snapshots, kept{now, clusterNames(now)})
			if !slices.IsSorted(clusterNames(now)) || len(now.clusters) != len(model) {
				t.Fatalf("snapshot %v of %d clusters", clusterNames(now), len(model))
			}
			for name := range model {
				if now.find(name) != model[name] {
					t.Fatalf("cluster %s is not the latest", name)
				}
			}
		}
		for _, k := range snapshots {
			if diff := cmp.Diff(k.names, clusterNames(k.bound)); diff != "" {
				t.Fatalf("a snapshot changed:\n%s", diff)
			}
		}
	})
}

func TestCapacityRevision(t *testing.T) {
	w := newClusterSnapshots()
	w.put(member("a"), true)
	w.put(member("a"), false)
	w.remove("a")
	if got := w.snapshot().capacityRevision; got != 1 {
		t.Errorf("capacity grew %d times", got)
	}
	if w.snapshot().find("a") != nil {
		t.Error("a removed cluster is found")
	}
}
