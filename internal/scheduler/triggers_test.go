package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func newSource(t *testing.T, l *testScheduler) *source {
	t.Helper()
	queue := priorityqueue.New(t.Name(), func(o *priorityqueue.Opts[request]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[request](l.options.BaseDelay, l.options.MaxDelay)
	})
	t.Cleanup(queue.ShutDown)
	return &source{scheduler: l.scheduler, ctx: t.Context(), queue: queue}
}

func TestBindingEvents(t *testing.T) {
	generation := func(n int64) func(*workv1alpha2.ResourceBinding) {
		return func(bound *workv1alpha2.ResourceBinding) { bound.Generation = n }
	}
	suspended := func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
	}
	deleting := func(bound *workv1alpha2.ResourceBinding) { bound.DeletionTimestamp = &noon }
	cases := map[string]struct {
		send func(*source)
		want int
	}{
		"a new binding is queued":             {func(o *source) { o.handleBindingAdded(newBinding(), false) }, 1},
		"a binding listed at start is queued": {func(o *source) { o.handleBindingAdded(newBinding(), true) }, 1},
		"a suspended binding is not":          {func(o *source) { o.handleBindingAdded(newBinding(suspended), false) }, 0},
		"another generation is queued":        {func(o *source) { o.handleBindingUpdated(newBinding(), newBinding(generation(2))) }, 1},
		"another status is not":               {func(o *source) { o.handleBindingUpdated(newBinding(), newBindingVersion("11")) }, 0},
		"a resumed binding is queued": {
			func(o *source) { o.handleBindingUpdated(newBinding(suspended), newBinding()) }, 1},
		"a binding that becomes suspended is not": {
			func(o *source) { o.handleBindingUpdated(newBinding(), newBinding(suspended, generation(2))) }, 0},
		"a deletion is not": {func(o *source) { o.handleBindingUpdated(newBinding(), newBinding(deleting, generation(2))) }, 0},
		"a write of the scheduler itself is not": {func(o *source) {
			o.scheduler.ownWrites.RecordState(requestFor("web-deployment"), newBindingVersion("12", generation(2)))
			o.handleBindingUpdated(newBinding(), newBindingVersion("11", generation(2)))
			o.handleBindingUpdated(newBindingVersion("11", generation(2)), newBindingVersion("12", generation(2)))
		}, 0},
		"a change after an own write is queued": {func(o *source) {
			o.scheduler.ownWrites.RecordState(requestFor("web-deployment"), newBindingVersion("12", generation(2)))
			o.handleBindingUpdated(newBinding(), newBindingVersion("13", generation(3)))
		}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newSource(t, newTestScheduler(t, withoutVersion(newBinding())))
			tc.send(o)
			if got := o.queue.Len(); got != tc.want {
				t.Errorf("%d bindings queued, want %d", got, tc.want)
			}
		})
	}
}

func TestRecreatedBindingIsScheduled(t *testing.T) {
	older, newer := newBindingVersion("10"), newBindingVersion("20")
	newer.UID = "b2"
	l := newTestScheduler(t, withoutVersion(newBinding()))
	s := newSource(t, l)
	s.handleBindingUpdated(older, newer)
	if s.queue.Len() != 1 {
		t.Errorf("%d bindings are queued", s.queue.Len())
	}
}

func TestEventResetsBackoff(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding()))
	l.backoff.recordFailure(requestFor("web-deployment"), retryWithBackoff)
	newSource(t, l).handleBindingAdded(newBinding(), false)
	if len(l.backoff.waiting) != 0 {
		t.Error("the failures before the change still count")
	}
}

func TestClusterEvents(t *testing.T) {
	onlyMember1 := func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member1"}}
	}
	labelled := func(name string) *clusterv1alpha1.Cluster {
		cluster := member(name)
		cluster.Labels = map[string]string{"a": "b"}
		return cluster
	}
	larger := func(name string) *clusterv1alpha1.Cluster {
		cluster := member(name)
		cluster.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1")}}
		return cluster
	}
	waiting := func(o *source) { o.scheduler.backoff.recordFailure(requestFor("web-deployment"), retryWhenCapacity) }
	cases := map[string]struct {
		send func(*source)
		want int
	}{
		"a new cluster that the affinity selects":         {func(o *source) { o.handleClusterAdded(member("member1"), false) }, 1},
		"a new cluster that the affinity does not select": {func(o *source) { o.handleClusterAdded(member("member2"), false) }, 0},
		"clusters listed at start queue nothing":          {func(o *source) { o.handleClusterAdded(member("member1"), true) }, 0},
		"other labels of a selected cluster":              {func(o *source) { o.handleClusterUpdated(member("member1"), labelled("member1")) }, 1},
		"a heartbeat queues nothing":                      {func(o *source) { o.handleClusterUpdated(member("member1"), member("member1")) }, 0},
		"a deleted cluster that the affinity selects": {func(o *source) {
			o.clusterHandlers().OnDelete(toolscache.DeletedFinalStateUnknown{Obj: member("member1")})
		}, 1},
		"more capacity queues no binding that does not wait": {func(o *source) { o.handleClusterUpdated(member("member1"), larger("member1")) }, 0},
		"more capacity queues waiting bindings": {func(o *source) {
			waiting(o)
			o.handleClusterUpdated(member("member1"), larger("member1"))
		}, 1},
		"more capacity in another cluster queues nothing": {func(o *source) {
			waiting(o)
			o.handleClusterUpdated(member("member2"), larger("member2"))
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newSource(t, newTestScheduler(t, withoutVersion(newBinding(onlyMember1))))
			tc.send(o)
			if got := o.queue.Len(); got != tc.want {
				t.Errorf("%d bindings queued, want %d", got, tc.want)
			}
		})
	}
}

func TestSnapshotAfterClusterEvents(t *testing.T) {
	o := newSource(t, newTestScheduler(t, withoutVersion(newBinding())))
	o.handleClusterAdded(member("b"), true)
	o.handleClusterAdded(member("a"), false)
	changed := member("a")
	changed.Labels = map[string]string{"a": "b"}
	o.handleClusterUpdated(member("a"), changed)
	o.handleClusterDeleted(member("b"))
	if diff := cmp.Diff([]*clusterv1alpha1.Cluster{changed}, o.scheduler.clusters.snapshot().clusters); diff != "" {
		t.Error(diff)
	}
}
