package scheduler

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
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

func requestFor(name string) request {
	return request{namespaced: true, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

func TestFailureBackoffDelays(t *testing.T) {
	cases := map[string]struct {
		byPriority bool
		class      retryMode
		want       []time.Duration
	}{
		"doubling from one second to ten": {true, retryWithBackoff, []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second}},
		"five minutes without capacity":        {true, retryWhenCapacity, []time.Duration{5 * time.Minute, 5 * time.Minute}},
		"the same without priority scheduling": {false, retryWhenCapacity, []time.Duration{time.Second, 2 * time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.PriorityScheduling = tc.byPriority
			b := newFailureBackoff(o)
			for try, want := range tc.want {
				if got := b.recordFailure(requestFor("a"), tc.class); got != want {
					t.Errorf("failure %d: delay %s, want %s", try+1, got, want)
				}
			}
			b.reset(requestFor("a"))
			if got := b.recordFailure(requestFor("a"), tc.class); got != tc.want[0] {
				t.Errorf("after a success: delay %s, want %s", got, tc.want[0])
			}
		})
	}
}

func TestFailureBackoffCountsWaitingBindings(t *testing.T) {
	b := newFailureBackoff(DefaultOptions())
	now := noon.Time
	b.now = func() time.Time { return now }
	b.recordFailure(requestFor("a"), retryWithBackoff)
	b.recordFailure(requestFor("b"), retryWhenCapacity)
	if b.count(false) != 1 || b.count(true) != 1 {
		t.Errorf("%d back off, %d wait for capacity", b.count(false), b.count(true))
	}
	if diff := cmp.Diff([]request{requestFor("b")}, b.waitingForCapacity(), cmp.AllowUnexported(request{})); diff != "" {
		t.Error(diff)
	}
	now = now.Add(2 * time.Second)
	if b.count(false) != 0 || b.count(true) != 1 {
		t.Errorf("later %d back off, %d wait for capacity", b.count(false), b.count(true))
	}
	b.recordFailure(requestFor("b"), retryWithBackoff)
	if len(b.waitingForCapacity()) != 0 {
		t.Error("what failed otherwise still waits for capacity")
	}
}

func ofPriority(priority int32) func(*workv1alpha2.ResourceBinding) {
	return func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: priority}
	}
}

func TestQueueOrder(t *testing.T) {
	s := &scheduler{options: DefaultOptions()}
	queue := priorityqueue.New(t.Name(), func(o *priorityqueue.Opts[request]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[request](time.Second, time.Second)
	})
	defer queue.ShutDown()
	push := func(name string, u urgency, change ...func(*workv1alpha2.ResourceBinding)) {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: s.priority(newBinding(change...), u)}, requestFor(name))
	}
	push("unset at start", urgencyBackground)
	push("negative", urgencyLive, ofPriority(-1))
	push("unset", urgencyLive)
	push("zero", urgencyLive, ofPriority(0))
	push("high at start", urgencyBackground, ofPriority(10))
	push("high", urgencyLive, ofPriority(10))
	push("highest", urgencyBackground, ofPriority(1000000000))
	var got []string
	for range 7 {
		r, _, _ := queue.GetWithPriority()
		got = append(got, r.Name)
		queue.Done(r)
	}
	want := []string{"highest", "high", "high at start", "unset", "zero", "unset at start", "negative"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPrioritySchedulingDisabled(t *testing.T) {
	s := &scheduler{}
	if got := *s.priority(newBinding(ofPriority(7)), urgencyLive); got != 0 {
		t.Errorf("priority %d", got)
	}
}

func newBindingVersion(rv string, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	bound := newBinding(change...)
	bound.ResourceVersion = rv
	return bound
}

func TestAssignmentTrackerReturnsUnobservedWrites(t *testing.T) {
	another := func(bound *workv1alpha2.ResourceBinding) { bound.UID = "b2" }
	cases := map[string]struct {
		observed         *workv1alpha2.ResourceBinding
		isWritten, isNew bool
	}{
		"an older state is replaced":                  {newBindingVersion("9"), true, false},
		"a state that is older by number is replaced": {newBindingVersion("8"), true, false},
		"the same state is an own write":              {newBindingVersion("10"), false, false},
		"a newer state is not an own write":           {newBindingVersion("11"), false, true},
		"another object with the same name":           {newBindingVersion("9", another), false, true},
		"an unknown version format":                   {newBindingVersion("v9"), false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, wrote := newAssignmentTracker(), newBindingVersion("10")
			n.recordWrite(requestFor("web-deployment"), wrote)
			latest := n.newest(requestFor("web-deployment"), tc.observed)
			if got := latest == wrote; got != tc.isWritten {
				t.Errorf("the written state is returned: %v, want %v", got, tc.isWritten)
			}
			if got := !n.isOwnWrite(requestFor("web-deployment"), tc.observed); got != tc.isNew {
				t.Errorf("not an own write: %v, want %v", got, tc.isNew)
			}
		})
	}
}

func TestAssignmentTrackerDropsObservedWrites(t *testing.T) {
	n := newAssignmentTracker()
	n.recordWrite(requestFor("web-deployment"), newBindingVersion("10"))
	n.isOwnWrite(requestFor("web-deployment"), newBindingVersion("10"))
	if len(n.writes) != 0 {
		t.Error("an observed write is still tracked")
	}
	if n.isOwnWrite(requestFor("web-deployment"), newBindingVersion("9")) {
		t.Error("an own write is reported without a write")
	}
}

func TestAssignmentTrackerDropsLostWrites(t *testing.T) {
	n, at := newAssignmentTracker(), noon.Time
	n.now = func() time.Time { return at }
	restored := newBindingVersion("9")
	n.recordWrite(requestFor("web-deployment"), newBindingVersion("10"))
	at = at.Add(maxWatchDelay)
	if n.newest(requestFor("web-deployment"), restored) != restored || n.isOwnWrite(requestFor("web-deployment"), restored) {
		t.Error("a lost write hides the stored state")
	}
}

func TestClusterChanges(t *testing.T) {
	with := func(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		cluster := member("a")
		change(cluster)
		return cluster
	}
	cases := map[string]struct {
		after              *clusterv1alpha1.Cluster
		concerns, capacity bool
	}{
		"nothing": {member("a"), false, false},
		"a heartbeat": {with(func(c *clusterv1alpha1.Cluster) {
			c.ResourceVersion = "99"
			c.Status.NodeSummary = &clusterv1alpha1.NodeSummary{TotalNum: 3}
		}), false, false},
		"another generation": {with(func(c *clusterv1alpha1.Cluster) { c.Generation = 2 }), true, true},
		"other labels":       {with(func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"a": "b"} }), true, false},
		"a deletion":         {with(func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &noon }), true, false},
		"another object":     {with(func(c *clusterv1alpha1.Cluster) { c.UID = "other" }), true, true},
		"fewer APIs":         {with(func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil }), true, false},
		"another kind of an API": {with(func(c *clusterv1alpha1.Cluster) {
			c.Status.APIEnablements[0].Resources[0].Kind = "StatefulSet"
		}), true, false},
		"more capacity": {with(func(c *clusterv1alpha1.Cluster) {
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1")}}
		}), false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := affectsPlacements(member("a"), tc.after); got != tc.concerns {
				t.Errorf("affects placements: %v, want %v", got, tc.concerns)
			}
			if got := mayHaveMoreCapacity(member("a"), tc.after); got != tc.capacity {
				t.Errorf("may have more capacity: %v, want %v", got, tc.capacity)
			}
		})
	}
}

func TestMinimumEstimateCounts(t *testing.T) {
	least := map[string]int32{}
	mergeMinimum(least, map[string]int32{"a": 5, "b": -1, "c": 3})
	mergeMinimum(least, map[string]int32{"a": 7, "b": 2, "c": 0, "d": -1})
	if diff := cmp.Diff(map[string]int32{"a": 5, "b": 2, "c": 0}, least); diff != "" {
		t.Error(diff)
	}
}

func TestEventTexts(t *testing.T) {
	bound := newBinding()
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 2}, {Name: "member2", Replicas: 3}}
	clusterWide := &workv1alpha2.ClusterResourceBinding{Spec: bound.Spec}
	clusterWide.Name = "web"
	if got := successMessage(bound); got != "Binding has been scheduled successfully. Result: {member1:2, member2:3}" {
		t.Error(got)
	}
	if got := successMessage(clusterWide); got != "Binding has been scheduled successfully. Result {member1:2, member2:3}" {
		t.Error(got)
	}
	following := newBinding(func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.Replicas, bound.Spec.ReplicaRequirements, bound.Spec.Clusters = 0, nil, []workv1alpha2.TargetCluster{{Name: "member3"}}
	})
	if got := successMessage(following); got != "Binding has been scheduled successfully. Result: {member3}" {
		t.Error(got)
	}
	v := verdict{err: errors.New("boom"), failedGroups: []placement.GroupFailure{{Index: 1, Name: "spare", Err: errors.New("full")}}}
	var got []string
	for _, err := range append(failureErrors(bound, v), failureErrors(clusterWide, v)...) {
		got = append(got, err.Error())
	}
	want := []string{
		"failed to schedule ResourceBinding(shop/web-deployment) with clusterAffinities index(1) \"spare\": full", "boom",
		"failed to schedule ClusterResourceBinding(web) with clusterAffinities index(1) \"spare\": full", "boom",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if uid := binding.TemplateReference(bound).GetUID(); uid != "t1" {
		t.Errorf("template of uid %q", uid)
	}
}

func TestFailuresAreReportedOncePerChange(t *testing.T) {
	reported := newReportedFailures()
	two := []error{errors.New("one"), errors.New("two")}
	for step, tc := range []struct {
		failures []error
		want     bool
	}{{nil, false}, {two, true}, {two, false}, {two[:1], true}, {nil, true}, {nil, false}} {
		if got := reported.update(requestFor("a"), tc.failures); got != tc.want {
			t.Errorf("step %d: update = %v, want %v", step, got, tc.want)
		}
	}
}

func TestMetricsOfSecondScheduler(t *testing.T) {
	registry := prometheus.NewRegistry()
	for waiting := range 2 {
		m, err := newMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.registerPendingGauge("active", func() int { return waiting + 1 }); err != nil {
			t.Fatal(err)
		}
		m.recordAttempt(placement.ScaleSchedule, nil, time.Millisecond)
		m.recordAttempt(placement.ScaleSchedule, errors.New("boom"), time.Millisecond)
		m.countEnqueued(causeAdd)
		if got := testutil.ToFloat64(m.attempts.WithLabelValues("scheduled", "ScaleSchedule")); got != float64(waiting+1) {
			t.Errorf("%v attempts counted", got)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "scheduler_pending_bindings" && family.GetMetric()[0].GetGauge().GetValue() != 2 {
			t.Errorf("pending is not counted by the last scheduler: %v", family.GetMetric())
		}
	}
}
