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

func names(s *snapshot) []string {
	var list []string
	for _, cluster := range s.clusters {
		list = append(list, cluster.Name)
	}
	return list
}

func TestSnapshotsAreSortedCompleteAndNeverChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		model := map[string]*clusterv1alpha1.Cluster{}
		type kept struct {
			of    *snapshot
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
			snapshots = append(snapshots, kept{now, names(now)})
			if !slices.IsSorted(names(now)) || len(now.clusters) != len(model) {
				t.Fatalf("snapshot %v of %d clusters", names(now), len(model))
			}
			for name := range model {
				if now.find(name) != model[name] {
					t.Fatalf("cluster %s is not the latest", name)
				}
			}
		}
		for _, k := range snapshots {
			if diff := cmp.Diff(k.names, names(k.of)); diff != "" {
				t.Fatalf("a snapshot changed:\n%s", diff)
			}
		}
	})
}

func TestRoomIsCountedOnlyWhenItGrows(t *testing.T) {
	w := newWorld()
	w.put(member("a"), true)
	w.put(member("a"), false)
	w.remove("a")
	if got := w.snapshot().room; got != 1 {
		t.Errorf("room grew %d times", got)
	}
	if w.snapshot().find("a") != nil {
		t.Error("a removed cluster is found")
	}
}

func named(name string) request {
	return request{namespaced: true, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

func TestFailuresBackOff(t *testing.T) {
	cases := map[string]struct {
		byPriority bool
		class      retry
		want       []time.Duration
	}{
		"doubling from one second to ten": {true, later, []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second}},
		"five minutes when there is no room": {true, whenRoom, []time.Duration{5 * time.Minute, 5 * time.Minute}},
		"alike without priorities":           {false, whenRoom, []time.Duration{time.Second, 2 * time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.PriorityScheduling = tc.byPriority
			b := newBacklog(o)
			for try, want := range tc.want {
				if got := b.fail(named("a"), tc.class); got != want {
					t.Errorf("failure %d waits %s, want %s", try+1, got, want)
				}
			}
			b.settle(named("a"))
			if got := b.fail(named("a"), tc.class); got != tc.want[0] {
				t.Errorf("after a success it waits %s, want %s", got, tc.want[0])
			}
		})
	}
}

func TestBacklogCountsWhatStillWaits(t *testing.T) {
	b := newBacklog(DefaultOptions())
	now := noon.Time
	b.now = func() time.Time { return now }
	b.fail(named("a"), later)
	b.fail(named("b"), whenRoom)
	if b.count(false) != 1 || b.count(true) != 1 {
		t.Errorf("%d back off, %d wait for room", b.count(false), b.count(true))
	}
	if diff := cmp.Diff([]request{named("b")}, b.forRoom(), cmp.AllowUnexported(request{})); diff != "" {
		t.Error(diff)
	}
	now = now.Add(2 * time.Second)
	if b.count(false) != 0 || b.count(true) != 1 {
		t.Errorf("later %d back off, %d wait for room", b.count(false), b.count(true))
	}
	b.fail(named("b"), later)
	if len(b.forRoom()) != 0 {
		t.Error("what failed otherwise still waits for room")
	}
}

func ofPriority(priority int32) func(*workv1alpha2.ResourceBinding) {
	return func(of *workv1alpha2.ResourceBinding) {
		of.Spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: priority}
	}
}

func TestTheQueueGoesByPriorityThenUrgencyThenArrival(t *testing.T) {
	s := &scheduler{options: DefaultOptions()}
	queue := priorityqueue.New(t.Name(), func(o *priorityqueue.Opts[request]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[request](time.Second, time.Second)
	})
	defer queue.ShutDown()
	push := func(name string, u urgency, change ...func(*workv1alpha2.ResourceBinding)) {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: s.priority(bound(change...), u)}, named(name))
	}
	push("unset at start", background)
	push("negative", live, ofPriority(-1))
	push("unset", live)
	push("zero", live, ofPriority(0))
	push("high at start", background, ofPriority(10))
	push("high", live, ofPriority(10))
	push("highest", background, ofPriority(1000000000))
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

func TestPrioritiesCountOnlyIfAskedFor(t *testing.T) {
	s := &scheduler{}
	if got := *s.priority(bound(ofPriority(7)), live); got != 0 {
		t.Errorf("priority %d", got)
	}
}

func version(rv string, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	of := bound(change...)
	of.ResourceVersion = rv
	return of
}

func TestWhatWasWrittenCountsUntilItIsObserved(t *testing.T) {
	another := func(of *workv1alpha2.ResourceBinding) { of.UID = "b2" }
	cases := map[string]struct {
		observed      *workv1alpha2.ResourceBinding
		written, news bool
	}{
		"an older state gives way and is no news": {version("9"), true, false},
		"a much older state is older in number":   {version("8"), true, false},
		"the same state is no news":               {version("10"), false, false},
		"a newer state is news":                   {version("11"), false, true},
		"another object of the name is news":      {version("9", another), false, true},
		"an unknown form of version is news":      {version("v9"), false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, wrote := newRecent(), version("10")
			n.remember(named("web-deployment"), wrote)
			latest := n.latest(named("web-deployment"), tc.observed)
			if got := latest == wrote; got != tc.written {
				t.Errorf("the written state is used: %v, want %v", got, tc.written)
			}
			if got := !n.known(named("web-deployment"), tc.observed); got != tc.news {
				t.Errorf("news: %v, want %v", got, tc.news)
			}
		})
	}
}

func TestWhatWasObservedIsForgotten(t *testing.T) {
	n := newRecent()
	n.remember(named("web-deployment"), version("10"))
	n.known(named("web-deployment"), version("10"))
	if len(n.written) != 0 {
		t.Error("an observed write is still held")
	}
	if n.known(named("web-deployment"), version("9")) {
		t.Error("something is known without a write")
	}
}

func TestAWriteThatTheStorageLostIsForgotten(t *testing.T) {
	n, at := newRecent(), noon.Time
	n.now = func() time.Time { return at }
	restored := version("9")
	n.remember(named("web-deployment"), version("10"))
	at = at.Add(recentFor)
	if n.latest(named("web-deployment"), restored) != restored || n.known(named("web-deployment"), restored) {
		t.Error("a write that no watch will show hides what is stored")
	}
}

func TestClusterChanges(t *testing.T) {
	with := func(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		cluster := member("a")
		change(cluster)
		return cluster
	}
	cases := map[string]struct {
		after           *clusterv1alpha1.Cluster
		concerns, roomy bool
	}{
		"nothing": {member("a"), false, false},
		"a heartbeat is of no concern": {with(func(c *clusterv1alpha1.Cluster) {
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
		"more room": {with(func(c *clusterv1alpha1.Cluster) {
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1")}}
		}), false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := concernsPlacements(member("a"), tc.after); got != tc.concerns {
				t.Errorf("concerns placements: %v, want %v", got, tc.concerns)
			}
			if got := hasMoreRoom(member("a"), tc.after); got != tc.roomy {
				t.Errorf("has more room: %v, want %v", got, tc.roomy)
			}
		})
	}
}

func TestTheLeastEstimateCounts(t *testing.T) {
	least := map[string]int32{}
	keepLeast(least, map[string]int32{"a": 5, "b": -1, "c": 3})
	keepLeast(least, map[string]int32{"a": 7, "b": 2, "c": 0, "d": -1})
	if diff := cmp.Diff(map[string]int32{"a": 5, "b": 2, "c": 0}, least); diff != "" {
		t.Error(diff)
	}
}

func TestEventTexts(t *testing.T) {
	of := bound()
	of.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 2}, {Name: "member2", Replicas: 3}}
	clusterWide := &workv1alpha2.ClusterResourceBinding{Spec: of.Spec}
	clusterWide.Name = "web"
	if got := successMessage(of); got != "Binding has been scheduled successfully. Result: {member1:2, member2:3}" {
		t.Error(got)
	}
	if got := successMessage(clusterWide); got != "Binding has been scheduled successfully. Result {member1:2, member2:3}" {
		t.Error(got)
	}
	following := bound(func(of *workv1alpha2.ResourceBinding) {
		of.Spec.Replicas, of.Spec.ReplicaRequirements, of.Spec.Clusters = 0, nil, []workv1alpha2.TargetCluster{{Name: "member3"}}
	})
	if got := successMessage(following); got != "Binding has been scheduled successfully. Result: {member3}" {
		t.Error(got)
	}
	v := verdict{err: errors.New("boom"), groups: []placement.GroupFailure{{Index: 1, Name: "spare", Err: errors.New("full")}}}
	var got []string
	for _, err := range append(failuresOf(of, v), failuresOf(clusterWide, v)...) {
		got = append(got, err.Error())
	}
	want := []string{
		"failed to schedule ResourceBinding(shop/web-deployment) with clusterAffinities index(1) \"spare\": full", "boom",
		"failed to schedule ClusterResourceBinding(web) with clusterAffinities index(1) \"spare\": full", "boom",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if uid := binding.Template(of).GetUID(); uid != "t1" {
		t.Errorf("template of uid %q", uid)
	}
}

func TestFailuresAreToldOncePerChange(t *testing.T) {
	news := newTold()
	two := []error{errors.New("one"), errors.New("two")}
	for step, tc := range []struct {
		failures []error
		want     bool
	}{{nil, false}, {two, true}, {two, false}, {two[:1], true}, {nil, true}, {nil, false}} {
		if got := news.differs(named("a"), tc.failures); got != tc.want {
			t.Errorf("step %d: differs = %v, want %v", step, got, tc.want)
		}
	}
}

func TestMetricsOfASecondSchedulerTakeOver(t *testing.T) {
	registry := prometheus.NewRegistry()
	for waiting := range 2 {
		m, err := newMeasurements(registry)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.pending("active", func() int { return waiting + 1 }); err != nil {
			t.Fatal(err)
		}
		m.attempted(placement.ScaleSchedule, nil, time.Millisecond)
		m.attempted(placement.ScaleSchedule, errors.New("boom"), time.Millisecond)
		m.queued(causeAdd)
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
