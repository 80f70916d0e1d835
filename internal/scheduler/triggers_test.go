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

func newSource(t *testing.T, l *loop) *source {
	t.Helper()
	queue := priorityqueue.New(t.Name(), func(o *priorityqueue.Opts[request]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[request](l.options.BaseDelay, l.options.MaxDelay)
	})
	t.Cleanup(queue.ShutDown)
	return &source{scheduler: l.scheduler, ctx: t.Context(), queue: queue}
}

func TestBindingEvents(t *testing.T) {
	generation := func(n int64) func(*workv1alpha2.ResourceBinding) {
		return func(of *workv1alpha2.ResourceBinding) { of.Generation = n }
	}
	suspended := func(of *workv1alpha2.ResourceBinding) {
		of.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
	}
	deleting := func(of *workv1alpha2.ResourceBinding) { of.DeletionTimestamp = &noon }
	cases := map[string]struct {
		send func(*source)
		want int
	}{
		"a new binding is queued":      {func(o *source) { o.bindingAdded(bound(), false) }, 1},
		"one that is listed is queued": {func(o *source) { o.bindingAdded(bound(), true) }, 1},
		"one that is held back is not": {func(o *source) { o.bindingAdded(bound(suspended), false) }, 0},
		"another generation is queued": {func(o *source) { o.bindingUpdated(bound(), bound(generation(2))) }, 1},
		"another status is not":        {func(o *source) { o.bindingUpdated(bound(), version("11")) }, 0},
		"one that is let go on is queued": {
			func(o *source) { o.bindingUpdated(bound(suspended), bound()) }, 1},
		"one that becomes held back is not": {
			func(o *source) { o.bindingUpdated(bound(), bound(suspended, generation(2))) }, 0},
		"a deletion is not": {func(o *source) { o.bindingUpdated(bound(), bound(deleting, generation(2))) }, 0},
		"what the scheduler itself has written is not": {func(o *source) {
			o.scheduler.recent.remember(named("web-deployment"), version("12", generation(2)))
			o.bindingUpdated(bound(), version("11", generation(2)))
			o.bindingUpdated(version("11", generation(2)), version("12", generation(2)))
		}, 0},
		"what came after an own write is queued": {func(o *source) {
			o.scheduler.recent.remember(named("web-deployment"), version("12", generation(2)))
			o.bindingUpdated(bound(), version("13", generation(3)))
		}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newSource(t, newLoop(t, unversioned(bound())))
			tc.send(o)
			if got := o.queue.Len(); got != tc.want {
				t.Errorf("%d bindings queued, want %d", got, tc.want)
			}
		})
	}
}

func TestAnEventEndsTheBackOff(t *testing.T) {
	l := newLoop(t, unversioned(bound()))
	l.backlog.fail(named("web-deployment"), later)
	newSource(t, l).bindingAdded(bound(), false)
	if len(l.backlog.waiting) != 0 {
		t.Error("the failures before the change still count")
	}
}

func TestClusterEvents(t *testing.T) {
	onlyMember1 := func(of *workv1alpha2.ResourceBinding) {
		of.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member1"}}
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
	waiting := func(o *source) { o.scheduler.backlog.fail(named("web-deployment"), whenRoom) }
	cases := map[string]struct {
		send func(*source)
		want int
	}{
		"a new cluster concerns those that may go there": {func(o *source) { o.clusterAdded(member("member1"), false) }, 1},
		"a new cluster does not concern others":          {func(o *source) { o.clusterAdded(member("member2"), false) }, 0},
		"the clusters at start queue nothing":            {func(o *source) { o.clusterAdded(member("member1"), true) }, 0},
		"other labels concern those that may go there":   {func(o *source) { o.clusterUpdated(member("member1"), labelled("member1")) }, 1},
		"a heartbeat concerns nobody":                    {func(o *source) { o.clusterUpdated(member("member1"), member("member1")) }, 0},
		"a removal concerns those that may be there": {func(o *source) {
			o.clusterDeleted(toolscache.DeletedFinalStateUnknown{Obj: member("member1")})
		}, 1},
		"more room concerns nobody who does not wait": {func(o *source) { o.clusterUpdated(member("member1"), larger("member1")) }, 0},
		"more room wakes those who wait for it": {func(o *source) {
			waiting(o)
			o.clusterUpdated(member("member1"), larger("member1"))
		}, 1},
		"more room elsewhere wakes nobody": {func(o *source) {
			waiting(o)
			o.clusterUpdated(member("member2"), larger("member2"))
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newSource(t, newLoop(t, unversioned(bound(onlyMember1))))
			tc.send(o)
			if got := o.queue.Len(); got != tc.want {
				t.Errorf("%d bindings queued, want %d", got, tc.want)
			}
		})
	}
}

func TestEveryClusterEventIsInTheNextSnapshot(t *testing.T) {
	o := newSource(t, newLoop(t, unversioned(bound())))
	o.clusterAdded(member("b"), true)
	o.clusterAdded(member("a"), false)
	changed := member("a")
	changed.Labels = map[string]string{"a": "b"}
	o.clusterUpdated(member("a"), changed)
	o.clusterDeleted(member("b"))
	if diff := cmp.Diff([]*clusterv1alpha1.Cluster{changed}, o.scheduler.clusters.snapshot().clusters); diff != "" {
		t.Error(diff)
	}
}
