package estimator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/nodecapacity"
)

// fataler is implemented by the tests of testing and rapid.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// mustReduce reduces an object.
func mustReduce[T any](t fataler, reduce func(runtime.Object) (T, error), object runtime.Object) T {
	t.Helper()
	reduced, err := reduce(object)
	if err != nil {
		t.Fatalf("reducing %T: %v", object, err)
	}
	return reduced
}

// heldCounts returns how many values of each kind a cache holds.
func heldCounts(c *cache) map[string]int {
	nodes, pods := c.nodes.Counts()
	counts := map[string]int{
		"nodes": nodes, "Pods": pods, "namespaces of unschedulable Pods": len(c.unschedulable), "IDs of unschedulable Pods": len(c.unschedulableIn),
		"owners": len(c.replicaSets), "UIDs of ReplicaSets": len(c.replicaSetOwners), "namespaces of quotas": len(c.quotas),
	}
	for _, each := range c.unschedulable {
		counts["unschedulable Pods"] += len(each)
	}
	for _, each := range c.replicaSets {
		counts["ReplicaSets"] += len(each)
	}
	for _, each := range c.quotas {
		counts["quotas"] += len(each)
	}
	return counts
}

// TestEventsEqualList requires that a cache holds the same after any events as after a list of the
// final objects.
func TestEventsEqualList(t *testing.T) {
	podStates := []*corev1.Pod{pod("p", "a", "cpu=1"), pod("p", "b", "cpu=2"), pod("p", "", "cpu=1"), unschedulablePod("p", "apps/v1", "ReplicaSet", "r")}
	setStates := []*metav1.PartialObjectMetadata{replicaSet("r", "1", "web"), replicaSet("r", "2", "web"), replicaSet("r", "1", "api"), {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", UID: "uid of r"}}}
	rapid.Check(t, func(t *rapid.T) {
		changed := newCache(true)
		pods, sets := podStore{changed}, replicaSetStore{changed}
		var lastPods []reducedPod
		var lastSets []reducedReplicaSet
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			pod := mustReduce(t, reducePod, podStates[rapid.IntRange(0, len(podStates)-1).Draw(t, "pod")])
			set := mustReduce(t, reduceReplicaSet, setStates[rapid.IntRange(0, len(setStates)-1).Draw(t, "ReplicaSet")])
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1, 2:
				pods.Set(pod)
				sets.Set(set)
				lastPods, lastSets = []reducedPod{pod}, []reducedReplicaSet{set}
			case 3:
				pods.Remove(pod)
				sets.Remove(set)
				lastPods, lastSets = nil, nil
			case 4:
				pods.Replace(nil)
				sets.Replace(nil)
				lastPods, lastSets = nil, nil
			case 5:
				pods.Replace([]reducedPod{pod})
				sets.Replace([]reducedReplicaSet{set})
				lastPods, lastSets = []reducedPod{pod}, []reducedReplicaSet{set}
			}
		}
		listed := newCache(true)
		podStore{listed}.Replace(lastPods)
		replicaSetStore{listed}.Replace(lastSets)
		if diff := cmp.Diff(heldCounts(listed), heldCounts(changed)); diff != "" {
			t.Errorf("held values (-after a list +after events):\n%s", diff)
		}
	})
}

func TestSinksOfNodesAndQuotas(t *testing.T) {
	c := newCache(true)
	nodes, quotas := nodeStore{c}, quotaStore{c}
	first, second, limit := mustReduce(t, reduceNode, node("a", "cpu=1")), mustReduce(t, reduceNode, node("b", "cpu=1")), mustReduce(t, reduceQuota, quota("cpu=5", "cpu=0"))
	nodes.Set(first)
	nodes.Replace([]*nodecapacity.Node{second})
	quotas.Set(limit)
	quotas.Set(limit)
	if got := heldCounts(c); got["nodes"] != 1 || got["quotas"] != 1 {
		t.Errorf("held values %v", got)
	}
	nodes.Remove(second)
	quotas.Remove(limit)
	if got := heldCounts(c); got["nodes"] != 0 || got["namespaces of quotas"] != 0 {
		t.Errorf("held values %v", got)
	}
}

func TestSyncedAfterAllLists(t *testing.T) {
	for name, test := range map[string]struct {
		quotas bool
		kinds  []string
		want   bool
	}{
		"all kinds without quotas":    {false, []string{nodeKind, podKind, replicaSetKind}, true},
		"a kind that is listed twice": {false, []string{nodeKind, podKind, podKind}, false},
		"quotas are missing":          {true, []string{nodeKind, podKind, replicaSetKind}, false},
		"all kinds":                   {true, []string{quotaKind, nodeKind, podKind, replicaSetKind, nodeKind}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(test.quotas)
			for _, kind := range test.kinds {
				listedStore[reducedPod]{ReducedStore: podStore{c}, cache: c, kind: kind}.Replace(nil)
			}
			isSynced := false
			select {
			case <-c.synced:
				isSynced = true
			default:
			}
			if isSynced != test.want || isSynced == (len(c.missingKinds()) > 0) {
				t.Errorf("synced: %t, want %t; missing kinds %q", isSynced, test.want, c.missingKinds())
			}
		})
	}
}
