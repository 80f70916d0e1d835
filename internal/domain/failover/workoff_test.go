package failover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

const (
	healthy   = workv1alpha2.ResourceHealthy
	unhealthy = workv1alpha2.ResourceUnhealthy
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// bound is a scheduled binding whose replicas are divided.
func bound(replicas int32, targets ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	b.Generation, b.Status.SchedulerObservedGeneration = 3, 3
	b.Spec.Replicas, b.Spec.Clusters = replicas, targets
	b.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided,
	}}
	return b
}

func target(name string, replicas int32) workv1alpha2.TargetCluster {
	return workv1alpha2.TargetCluster{Name: name, Replicas: replicas}
}

func reporting(b *workv1alpha2.ResourceBinding, health workv1alpha2.ResourceHealth, clusters ...string) *workv1alpha2.ResourceBinding {
	for _, name := range clusters {
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: name, Applied: true, Health: health})
	}
	return b
}

// leaving is a task that began some minutes before noon.
func leaving(cluster string, replicas int32, minutes int) workv1alpha2.GracefulEvictionTask {
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: cluster, PurgeMode: policyv1alpha1.PurgeModeGracefully, Producer: workv1alpha2.EvictionProducerTaintManager,
		CreationTimestamp: &metav1.Time{Time: noon.Add(-time.Duration(minutes) * time.Minute)},
	}
	if replicas > 0 {
		task.Replicas = &replicas
	}
	return task
}

// failed makes a binding remember that one state of its template failed in the cluster
// a, and have another or the same.
func failed(b *workv1alpha2.ResourceBinding, then, now string) {
	b.Spec.Resource.ResourceVersion = now
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	b.Annotations = map[string]string{workv1alpha2.FailedInAnnotation: fmt.Sprintf(`{"template":%q,"clusters":{"a":"2026-05-01T11:59:00Z"}}`, then)}
}

func changed(task workv1alpha2.GracefulEvictionTask, change func(*workv1alpha2.GracefulEvictionTask)) workv1alpha2.GracefulEvictionTask {
	change(&task)
	return task
}

func never(string) bool  { return false }
func always(string) bool { return true }

func in(clusters ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(clusters, name) }
}

// usual is noon with everything proven, nothing gone and no way back.
func usual() Circumstances {
	return Circumstances{Now: noon, Timeout: 10 * time.Minute, Proven: always, Emptied: never, Removed: never, Habitable: never}
}

func TestWorkOff(t *testing.T) {
	confirm := func(task *workv1alpha2.GracefulEvictionTask) { task.SuppressDeletion = new(false) }
	suppress := func(task *workv1alpha2.GracefulEvictionTask) { task.SuppressDeletion = new(true) }
	mode := func(mode policyv1alpha1.PurgeMode) func(*workv1alpha2.GracefulEvictionTask) {
		return func(task *workv1alpha2.GracefulEvictionTask) { task.PurgeMode = mode }
	}
	of := func(producer string) func(*workv1alpha2.GracefulEvictionTask) {
		return func(task *workv1alpha2.GracefulEvictionTask) { task.Producer = producer }
	}
	direct := mode(policyv1alpha1.PurgeModeDirectly)
	tests := map[string]struct {
		bound  *workv1alpha2.ResourceBinding
		task   workv1alpha2.GracefulEvictionTask
		change func(*workv1alpha2.ResourceBinding, *Circumstances)
		want   string
	}{
		"a task without a time gets one": {
			bound: bound(2, target("b", 2)), task: workv1alpha2.GracefulEvictionTask{FromCluster: "a"},
			want: "keeps a until 12:10",
		},
		"a task whose replacement is not healthy yet waits until its time is over": {
			bound: reporting(bound(2, target("b", 2)), unhealthy, "b"), task: leaving("a", 2, 1), want: "keeps a until 12:09",
		},
		"a task has its own time": {
			bound: reporting(bound(2, target("b", 2)), unhealthy, "b"),
			task:  changed(leaving("a", 2, 1), func(task *workv1alpha2.GracefulEvictionTask) { task.GracePeriodSeconds = new(int32(120)) }),
			want:  "keeps a until 12:01",
		},
		"a healthy replacement ends it": {
			bound: reporting(bound(2, target("b", 2)), healthy, "b"), task: leaving("a", 2, 1), want: "ends a: the workload is healthy in b",
		},
		"one of two targets that is not healthy keeps it": {
			bound: reporting(reporting(bound(2, target("b", 1), target("c", 1)), healthy, "b"), unhealthy, "c"),
			task:  leaving("a", 2, 1), want: "keeps a until 12:09",
		},
		"a target that has not reported keeps it": {
			bound: reporting(bound(2, target("b", 1), target("c", 1)), healthy, "b"), task: leaving("a", 2, 1), want: "keeps a until 12:09",
		},
		"health that is about something older keeps it": {
			bound: reporting(bound(2, target("b", 2)), healthy, "b"), task: leaving("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Proven = never }, want: "keeps a until 12:09",
		},
		"health of what was not applied keeps it": {
			bound: reporting(bound(2, target("b", 2)), healthy, "b"), task: leaving("a", 2, 1),
			change: func(b *workv1alpha2.ResourceBinding, _ *Circumstances) { b.Status.AggregatedStatus[0].Applied = false },
			want:   "keeps a until 12:09",
		},
		"a placement that the scheduler has not confirmed keeps it": {
			bound: reporting(bound(2, target("b", 2)), healthy, "b"), task: leaving("a", 2, 1),
			change: func(b *workv1alpha2.ResourceBinding, _ *Circumstances) { b.Generation++ }, want: "keeps a until 12:09",
		},
		"replicas without a cluster keep it, healthy as the others are": {
			bound: reporting(bound(3, target("b", 1)), healthy, "b"), task: leaving("a", 2, 1), want: "keeps a until 12:09",
		},
		"an empty placement never counts as healthy": {
			bound: bound(2), task: leaving("a", 2, 1), want: "keeps a until 12:09",
		},
		"an empty placement keeps it when its time is over, and that is told": {
			bound: bound(2), task: leaving("a", 2, 10), want: "keeps a; held: no other cluster takes the workload",
		},
		"an unhealthy replacement keeps it when its time is over": {
			bound: reporting(bound(2, target("b", 2)), unhealthy, "b"), task: leaving("a", 2, 11),
			want: "keeps a; held: the workload is not known to be healthy in b",
		},
		"missing replicas keep it when its time is over": {
			bound: reporting(bound(3, target("b", 1)), healthy, "b"), task: leaving("a", 2, 11),
			want: "keeps a; held: 2 of its replicas have no cluster",
		},
		"enough healthy replicas end it when its time is over": {
			bound: reporting(reporting(bound(4, target("b", 2), target("c", 2)), healthy, "b"), unhealthy, "c"),
			task:  leaving("a", 2, 11), want: "ends a: its time is over, and healthy copies stand in for it in b",
		},
		"too few healthy replicas keep it when its time is over": {
			bound: reporting(reporting(bound(4, target("b", 1), target("c", 3)), healthy, "b"), unhealthy, "c"),
			task:  leaving("a", 2, 11), want: "keeps a; held: the workload is not known to be healthy in c",
		},
		"one healthy copy ends it when its time is over and every cluster has all": {
			bound: reporting(reporting(bound(2, target("b", 2), target("c", 2)), healthy, "b"), unhealthy, "c"), task: leaving("a", 2, 11),
			change: func(b *workv1alpha2.ResourceBinding, _ *Circumstances) { b.Spec.Placement.ReplicaScheduling = nil },
			want:   "ends a: its time is over, and healthy copies stand in for it in b",
		},
		"a user ends it": {bound: bound(2), task: changed(leaving("a", 2, 1), confirm), want: "ends a: its end was confirmed"},
		"a user keeps it": {
			bound: reporting(bound(2, target("b", 2)), healthy, "b"), task: changed(leaving("a", 2, 11), suppress), want: "keeps a",
		},
		"Never waits for the user, even without the mark": {
			bound: reporting(bound(2, target("b", 2)), healthy, "b"),
			task:  changed(leaving("a", 2, 11), mode(policyv1alpha1.PurgeModeNever)), want: "keeps a",
		},
		"a cluster that is removed ends it": {
			bound: bound(2), task: leaving("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Removed = in("a") },
			want:   "ends a: the cluster is registered no more",
		},
		"Directly waits for the copy to be gone, however long": {
			bound: reporting(bound(2, target("b", 2)), healthy, "b"), task: changed(leaving("a", 2, 99), direct),
			want: "keeps a; held: its copy there is not gone yet, and no other cluster gets the workload before",
		},
		"Directly ends with a healthy replacement": {
			bound: reporting(bound(2, target("b", 2)), healthy, "b"), task: changed(leaving("a", 2, 1), direct),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Emptied = in("a") }, want: "ends a: the workload is healthy in b",
		},
		"Directly keeps the cluster out as long as its time is not over": {
			bound: bound(2), task: changed(leaving("a", 2, 1), direct),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Emptied = in("a") }, want: "keeps a until 12:09",
		},
		"Directly ends when its time is over: there is nothing left to lose": {
			bound: bound(2), task: changed(leaving("a", 2, 11), direct),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Emptied = in("a") },
			want:   "ends a: its time is over, and the copy there is gone",
		},
		"a cluster that may have it again gets it back when no other takes it": {
			bound: bound(2), task: leaving("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Habitable = in("a") }, want: "returns a; on a:2",
		},
		"a cluster gets back no more replicas than are missing": {
			bound: bound(3, target("b", 2)), task: leaving("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Habitable = in("a") }, want: "returns a; on b:2 a:1",
		},
		"a workload that has another place does not return": {
			bound: bound(2, target("b", 2)), task: leaving("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Habitable = in("a") }, want: "keeps a until 12:09",
		},
		"an application that is unhealthy does not return before its time is over": {
			bound: reporting(bound(2), unhealthy, "a"),
			task:  changed(leaving("a", 2, 1), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(b *workv1alpha2.ResourceBinding, c *Circumstances) {
				c.Habitable = in("a")
				failed(b, "7", "7")
			}, want: "keeps a until 12:09",
		},
		"an application that was changed since it failed returns": {
			bound: reporting(bound(2), unhealthy, "a"), task: changed(leaving("a", 2, 1), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(b *workv1alpha2.ResourceBinding, c *Circumstances) {
				c.Habitable = in("a")
				failed(b, "7", "8")
			}, want: "returns a; on a:2",
		},
		"an application that was changed does not return when it has another place": {
			bound: reporting(bound(2, target("b", 2)), unhealthy, "a", "b"), task: changed(leaving("a", 2, 1), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(b *workv1alpha2.ResourceBinding, c *Circumstances) {
				c.Habitable = in("a")
				failed(b, "7", "8")
			}, want: "keeps a until 12:09",
		},
		"an application that is healthy again returns": {
			bound: reporting(bound(2), healthy, "a"), task: changed(leaving("a", 2, 1), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Habitable = in("a") }, want: "returns a; on a:2",
		},
		"an application that has no other place returns when its time is over": {
			bound: reporting(bound(2), unhealthy, "a"), task: changed(leaving("a", 2, 11), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Habitable = in("a") }, want: "returns a; on a:2",
		},
		"an application that has another place leaves when its time is over, unhealthy as that may be": {
			bound: reporting(bound(2, target("b", 2)), unhealthy, "a", "b"), task: changed(leaving("a", 2, 11), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Habitable = in("a") },
			want:   "ends a: its time is over, the workload is not healthy there, and it has b",
		},
		"an application that is healthy again stays as long as no other copy is": {
			bound: reporting(reporting(bound(2, target("b", 2)), healthy, "a"), unhealthy, "b"), task: changed(leaving("a", 2, 11), of(workv1alpha2.EvictionProducerApplicationFailover)),
			want: "keeps a; held: the workload is not known to be healthy in b",
		},
		"what others evict does not return": {
			bound: bound(2), task: changed(leaving("a", 2, 1), of("somebody")),
			change: func(_ *workv1alpha2.ResourceBinding, c *Circumstances) { c.Habitable = in("a") }, want: "keeps a until 12:09",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			circumstances := usual()
			test.bound.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{test.task}
			if test.change != nil {
				test.change(test.bound, &circumstances)
			}
			before := test.bound.DeepCopy()
			if diff := cmp.Diff(test.want, say(WorkOff(test.bound, circumstances))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.bound); diff != "" {
				t.Errorf("the binding was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// say puts an outcome into words.
func say(o Outcome) string {
	var said []string
	for _, task := range o.Tasks {
		kept := "keeps " + task.FromCluster
		if !o.Next.IsZero() {
			kept += " until " + o.Next.Format("15:04")
		}
		said = append(said, kept)
	}
	for _, ended := range o.Ended {
		said = append(said, fmt.Sprintf("ends %s: %s", ended.Task.FromCluster, ended.Why))
	}
	for _, held := range o.Held {
		said = append(said, "held: "+held.Why)
	}
	for _, returned := range o.Returned {
		on := make([]string, 0, len(o.Clusters))
		for _, each := range o.Clusters {
			on = append(on, fmt.Sprintf("%s:%d", each.Name, each.Replicas))
		}
		said = append(said, fmt.Sprintf("returns %s; on %s", returned.Task.FromCluster, strings.Join(on, " ")))
	}
	return strings.Join(said, "; ")
}

func TestAnApplicationThatFailedInOneClusterAfterTheOtherReturnsToTheLast(t *testing.T) {
	b := reporting(bound(2), unhealthy, "a", "b")
	failed(b, "7", "7")
	b.Annotations[workv1alpha2.FailedInAnnotation] = `{"template":"7","clusters":{"a":"2026-05-01T11:39:00Z","b":"2026-05-01T11:48:00Z"}}`
	first, last := leaving("a", 2, 21), leaving("b", 2, 12)
	first.Producer, last.Producer = workv1alpha2.EvictionProducerApplicationFailover, workv1alpha2.EvictionProducerApplicationFailover
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{first, last}
	circumstances := usual()
	circumstances.Habitable = in("a", "b")
	if diff := cmp.Diff("keeps a; held: no other cluster takes the workload; returns b; on b:2", say(WorkOff(b, circumstances))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	circumstances.Habitable = in("a")
	if outcome := WorkOff(b, circumstances); len(outcome.Returned) != 1 || outcome.Returned[0].Task.FromCluster != "a" {
		t.Errorf("the last cluster is not habitable, and the first does not have it again: %s", say(outcome))
	}
}

func TestEveryClusterOfAWorkloadThatAllHaveReturnsTogether(t *testing.T) {
	b := bound(2)
	b.Spec.Placement.ReplicaScheduling = nil
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{leaving("a", 2, 1), leaving("b", 2, 1), leaving("c", 2, 1)}
	circumstances := usual()
	circumstances.Habitable = in("a", "c")
	outcome := WorkOff(b, circumstances)
	if diff := cmp.Diff([]workv1alpha2.TargetCluster{target("a", 2), target("c", 2)}, outcome.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if len(outcome.Tasks) != 1 || outcome.Tasks[0].FromCluster != "b" {
		t.Errorf("tasks left: %+v", outcome.Tasks)
	}
}

func TestManyTargetsThatAreNotHealthyAreNotAllNamed(t *testing.T) {
	b := bound(12)
	for i := range 12 {
		b.Spec.Clusters = append(b.Spec.Clusters, target(fmt.Sprintf("m%02d", i), 1))
	}
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{leaving("a", 2, 11)}
	outcome := WorkOff(b, usual())
	if len(outcome.Held) != 1 || !strings.HasSuffix(outcome.Held[0].Why, "m08, m09 and 2 more") {
		t.Errorf("held: %+v", outcome.Held)
	}
}

// drawn is a binding with any targets, reports and tasks.
func drawn(t *rapid.T) *workv1alpha2.ResourceBinding {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	b := bound(rapid.Int32Range(0, 6).Draw(t, "replicas"))
	if rapid.Bool().Draw(t, "duplicated") {
		b.Spec.Placement.ReplicaScheduling = nil
	}
	for _, cluster := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(t, "targets") {
		b.Spec.Clusters = append(b.Spec.Clusters, target(cluster, rapid.Int32Range(0, 4).Draw(t, "on target")))
	}
	for _, cluster := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(t, "reports") {
		reporting(b, rapid.SampledFrom([]workv1alpha2.ResourceHealth{healthy, unhealthy, workv1alpha2.ResourceUnknown}).Draw(t, "health"), cluster)
	}
	for _, cluster := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(t, "tasks") {
		task := leaving(cluster, rapid.Int32Range(0, 4).Draw(t, "leaving"), rapid.IntRange(0, 20).Draw(t, "minutes"))
		task.PurgeMode = rapid.SampledFrom([]policyv1alpha1.PurgeMode{"", "Gracefully", "Directly", "Never"}).Draw(t, "mode")
		task.Producer = rapid.SampledFrom([]string{workv1alpha2.EvictionProducerTaintManager, workv1alpha2.EvictionProducerApplicationFailover, "other"}).Draw(t, "producer")
		task.SuppressDeletion = rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, "suppressed")
		if rapid.Bool().Draw(t, "new") {
			task.CreationTimestamp = nil
		}
		b.Spec.GracefulEvictionTasks = append(b.Spec.GracefulEvictionTasks, task)
	}
	b.Generation = rapid.Int64Range(3, 4).Draw(t, "generation")
	failed(b, "7", rapid.SampledFrom([]string{"7", "8"}).Draw(t, "template"))
	return b
}

func drawnCircumstances(t *rapid.T) Circumstances {
	some := func(label string) func(string) bool {
		chosen := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d"})).Draw(t, label)
		return in(chosen...)
	}
	return Circumstances{
		Now: noon, Timeout: time.Duration(rapid.IntRange(0, 15).Draw(t, "timeout")) * time.Minute,
		Proven: some("proven"), Emptied: some("emptied"), Removed: some("removed"), Habitable: some("habitable"),
	}
}

func TestAnOldCopyGoesOnlyWhenItIsProvenToBeReplacedOrSomebodyWantsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, c := drawn(t), drawnCircumstances(t)
		outcome := WorkOff(b, c)
		proven := func(name string) bool {
			return c.Proven(name) && slices.ContainsFunc(b.Status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
				return item.ClusterName == name && item.Health == healthy
			})
		}
		for _, ended := range outcome.Ended {
			task := ended.Task
			switch {
			case task.SuppressDeletion != nil && !*task.SuppressDeletion, c.Removed(task.FromCluster), c.Emptied(task.FromCluster):
				continue // a user said so, or there is nothing to lose
			case task.SuppressDeletion != nil, task.PurgeMode == policyv1alpha1.PurgeModeNever, task.PurgeMode == policyv1alpha1.PurgeModeDirectly:
				t.Fatalf("task %+v ended: %s", task, ended.Why)
			}
			late := !c.Now.Before(task.CreationTimestamp.Add(c.Timeout))
			if late && Placed(&b.Spec) && keepsFailedCopy(&task) && !slices.ContainsFunc(b.Status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
				return item.ClusterName == task.FromCluster && item.Health == healthy
			}) {
				continue // what failed there has other clusters
			}
			if !Placed(&b.Spec) || !slices.ContainsFunc(names(&b.Spec), proven) {
				t.Fatalf("task %+v ended without a healthy copy anywhere: %s", task, ended.Why)
			}
			if !late && (b.Generation != b.Status.SchedulerObservedGeneration || !allOf(names(&b.Spec), proven)) {
				t.Fatalf("task %+v ended before its time although not all is healthy: %s", task, ended.Why)
			}
		}
	})
}

func allOf(names []string, holds func(string) bool) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !holds(name) })
}

func TestEveryTaskIsKeptEndedOrReturned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, c := drawn(t), drawnCircumstances(t)
		outcome := WorkOff(b, c)
		if got := len(outcome.Tasks) + len(outcome.Ended) + len(outcome.Returned); got != len(b.Spec.GracefulEvictionTasks) {
			t.Fatalf("%d of %d tasks are accounted for", got, len(b.Spec.GracefulEvictionTasks))
		}
		for _, returned := range outcome.Returned {
			if !slices.ContainsFunc(outcome.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == returned.Task.FromCluster }) {
				t.Fatalf("%s returned and is no target", returned.Task.FromCluster)
			}
		}
		if len(outcome.Returned) == 0 && !slices.EqualFunc(b.Spec.Clusters, outcome.Clusters, func(x, y workv1alpha2.TargetCluster) bool { return x.Name == y.Name && x.Replicas == y.Replicas }) {
			t.Fatalf("targets changed from %v to %v", b.Spec.Clusters, outcome.Clusters)
		}
		if !outcome.Next.IsZero() && !outcome.Next.After(c.Now) {
			t.Fatalf("the next look at %s is not after %s", outcome.Next, c.Now)
		}
		begun := !slices.ContainsFunc(b.Spec.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool { return task.CreationTimestamp.IsZero() })
		b.Spec.Clusters, b.Spec.GracefulEvictionTasks = outcome.Clusters, outcome.Tasks
		if len(outcome.Returned)+len(outcome.Ended) > 0 || !begun {
			return // what ends or returns relieves the others
		}
		if diff := cmp.Diff(outcome.Tasks, WorkOff(b, c).Tasks); diff != "" {
			t.Fatalf("a second look decides otherwise (-first +second):\n%s", diff)
		}
	})
}
