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

// newBinding returns a scheduled binding whose replicas are divided.
func newBinding(replicas int32, targets ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBinding {
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

func withHealth(b *workv1alpha2.ResourceBinding, health workv1alpha2.ResourceHealth, clusters ...string) *workv1alpha2.ResourceBinding {
	for _, name := range clusters {
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: name, Applied: true, Health: health})
	}
	return b
}

// evictionTask returns a task that was created the given number of minutes before noon.
func evictionTask(cluster string, replicas int32, minutes int) workv1alpha2.GracefulEvictionTask {
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: cluster, PurgeMode: policyv1alpha1.PurgeModeGracefully, Producer: workv1alpha2.EvictionProducerTaintManager,
		CreationTimestamp: &metav1.Time{Time: noon.Add(-time.Duration(minutes) * time.Minute)},
	}
	if replicas > 0 {
		task.Replicas = &replicas
	}
	return task
}

// setFailedCluster records in the binding that the template version then failed in cluster a. now is
// the current template version.
func setFailedCluster(b *workv1alpha2.ResourceBinding, then, now string) {
	b.Spec.Resource.ResourceVersion = now
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	b.Annotations = map[string]string{workv1alpha2.FailedInAnnotation: fmt.Sprintf(`{"template":%q,"clusters":{"a":"2026-05-01T11:59:00Z"}}`, then)}
}

func withChange(task workv1alpha2.GracefulEvictionTask, change func(*workv1alpha2.GracefulEvictionTask)) workv1alpha2.GracefulEvictionTask {
	change(&task)
	return task
}

func noCluster(string) bool    { return false }
func everyCluster(string) bool { return true }

func oneOf(clusters ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(clusters, name) }
}

// defaultObservations returns observations at noon: all statuses are current, no copy is deleted,
// and no cluster can run the workload.
func defaultObservations() Observations {
	return Observations{Now: noon, Timeout: 10 * time.Minute, IsStatusCurrent: everyCluster, IsCopyGone: noCluster, IsUnregistered: noCluster, CanRunWorkload: noCluster}
}

func TestDecideEvictions(t *testing.T) {
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
		change func(*workv1alpha2.ResourceBinding, *Observations)
		want   string
	}{
		"a task without a time gets one": {
			bound: newBinding(2, target("b", 2)), task: workv1alpha2.GracefulEvictionTask{FromCluster: "a"},
			want: "keeps a until 12:10",
		},
		"a replacement that is not healthy yet keeps the task": {
			bound: withHealth(newBinding(2, target("b", 2)), unhealthy, "b"), task: evictionTask("a", 2, 1), want: "keeps a until 12:09",
		},
		"a task has its own grace period": {
			bound: withHealth(newBinding(2, target("b", 2)), unhealthy, "b"),
			task:  withChange(evictionTask("a", 2, 1), func(task *workv1alpha2.GracefulEvictionTask) { task.GracePeriodSeconds = new(int32(120)) }),
			want:  "keeps a until 12:01",
		},
		"a healthy replacement ends the task": {
			bound: withHealth(newBinding(2, target("b", 2)), healthy, "b"), task: evictionTask("a", 2, 1), want: "ends a: the workload is healthy in b",
		},
		"one unhealthy target of two keeps the task": {
			bound: withHealth(withHealth(newBinding(2, target("b", 1), target("c", 1)), healthy, "b"), unhealthy, "c"),
			task:  evictionTask("a", 2, 1), want: "keeps a until 12:09",
		},
		"a target without a status keeps the task": {
			bound: withHealth(newBinding(2, target("b", 1), target("c", 1)), healthy, "b"), task: evictionTask("a", 2, 1), want: "keeps a until 12:09",
		},
		"an outdated status keeps the task": {
			bound: withHealth(newBinding(2, target("b", 2)), healthy, "b"), task: evictionTask("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.IsStatusCurrent = noCluster }, want: "keeps a until 12:09",
		},
		"a failed scheduling of the current generation keeps the task": {
			bound: withHealth(newBinding(2, target("b", 2)), healthy, "b"), task: evictionTask("a", 2, 1),
			change: func(b *workv1alpha2.ResourceBinding, _ *Observations) {
				b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonNoClusterFit}}
			},
			want: "keeps a until 12:09",
		},
		"a scale-down to 0 ends the task": {
			bound: newBinding(0), task: evictionTask("a", 2, 1),
			change: func(b *workv1alpha2.ResourceBinding, _ *Observations) {
				b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
			},
			want: "ends a: the workload is scaled to 0 replicas",
		},
		"an object without replicas is not scaled to 0": {bound: newBinding(0), task: evictionTask("a", 0, 1), want: "keeps a until 12:09"},
		"a status that is not applied keeps the task": {
			bound: withHealth(newBinding(2, target("b", 2)), healthy, "b"), task: evictionTask("a", 2, 1),
			change: func(b *workv1alpha2.ResourceBinding, _ *Observations) { b.Status.AggregatedStatus[0].Applied = false },
			want:   "keeps a until 12:09",
		},
		"a generation that is not scheduled keeps the task": {
			bound: withHealth(newBinding(2, target("b", 2)), healthy, "b"), task: evictionTask("a", 2, 1),
			change: func(b *workv1alpha2.ResourceBinding, _ *Observations) { b.Generation++ }, want: "keeps a until 12:09",
		},
		"replicas without a cluster keep the task": {
			bound: withHealth(newBinding(3, target("b", 1)), healthy, "b"), task: evictionTask("a", 2, 1), want: "keeps a until 12:09",
		},
		"an empty placement never counts as healthy": {
			bound: newBinding(2), task: evictionTask("a", 2, 1), want: "keeps a until 12:09",
		},
		"grace period over: an empty placement holds the task": {
			bound: newBinding(2), task: evictionTask("a", 2, 10), want: "keeps a; held: no other cluster takes the workload",
		},
		"grace period over: an unhealthy replacement holds the task": {
			bound: withHealth(newBinding(2, target("b", 2)), unhealthy, "b"), task: evictionTask("a", 2, 11),
			want: "keeps a; held: the workload is not known to be healthy in b",
		},
		"grace period over: missing replicas hold the task": {
			bound: withHealth(newBinding(3, target("b", 1)), healthy, "b"), task: evictionTask("a", 2, 11),
			want: "keeps a; held: 2 replicas of the workload have no cluster",
		},
		"grace period over: enough healthy replicas end the task": {
			bound: withHealth(withHealth(newBinding(4, target("b", 2), target("c", 2)), healthy, "b"), unhealthy, "c"),
			task:  evictionTask("a", 2, 11), want: "ends a: the grace period is over, and healthy copies replace it in b",
		},
		"grace period over: too few healthy replicas hold the task": {
			bound: withHealth(withHealth(newBinding(4, target("b", 1), target("c", 3)), healthy, "b"), unhealthy, "c"),
			task:  evictionTask("a", 2, 11), want: "keeps a; held: the workload is not known to be healthy in c",
		},
		"grace period over: one healthy copy of a duplicated workload ends the task": {
			bound: withHealth(withHealth(newBinding(2, target("b", 2), target("c", 2)), healthy, "b"), unhealthy, "c"), task: evictionTask("a", 2, 11),
			change: func(b *workv1alpha2.ResourceBinding, _ *Observations) { b.Spec.Placement.ReplicaScheduling = nil },
			want:   "ends a: the grace period is over, and healthy copies replace it in b",
		},
		"a user ends the task": {bound: newBinding(2), task: withChange(evictionTask("a", 2, 1), confirm), want: "ends a: a user confirmed the end of the eviction"},
		"a user keeps the task": {
			bound: withHealth(newBinding(2, target("b", 2)), healthy, "b"), task: withChange(evictionTask("a", 2, 11), suppress), want: "keeps a",
		},
		"Never waits for the user, even without suppressDeletion": {
			bound: withHealth(newBinding(2, target("b", 2)), healthy, "b"),
			task:  withChange(evictionTask("a", 2, 11), mode(policyv1alpha1.PurgeModeNever)), want: "keeps a",
		},
		"an unregistered cluster ends the task": {
			bound: newBinding(2), task: evictionTask("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.IsUnregistered = oneOf("a") },
			want:   "ends a: the cluster is not registered any more",
		},
		"Directly waits without limit until the copy is deleted": {
			bound: withHealth(newBinding(2, target("b", 2)), healthy, "b"), task: withChange(evictionTask("a", 2, 99), direct),
			want: "keeps a; held: the copy there still exists, and no other cluster gets the workload before it is deleted",
		},
		"Directly ends with a healthy replacement": {
			bound: withHealth(newBinding(2, target("b", 2)), healthy, "b"), task: withChange(evictionTask("a", 2, 1), direct),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.IsCopyGone = oneOf("a") }, want: "ends a: the workload is healthy in b",
		},
		"Directly keeps the task during the grace period": {
			bound: newBinding(2), task: withChange(evictionTask("a", 2, 1), direct),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.IsCopyGone = oneOf("a") }, want: "keeps a until 12:09",
		},
		"grace period over: Directly ends the task without a copy": {
			bound: newBinding(2), task: withChange(evictionTask("a", 2, 11), direct),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.IsCopyGone = oneOf("a") },
			want:   "ends a: the grace period is over, and the copy there is deleted",
		},
		"a workload without another cluster returns": {
			bound: newBinding(2), task: evictionTask("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.CanRunWorkload = oneOf("a") }, want: "returns a; on a:2",
		},
		"only the missing replicas return": {
			bound: newBinding(3, target("b", 2)), task: evictionTask("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.CanRunWorkload = oneOf("a") }, want: "returns a; on b:2 a:1",
		},
		"a workload with another cluster does not return": {
			bound: newBinding(2, target("b", 2)), task: evictionTask("a", 2, 1),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.CanRunWorkload = oneOf("a") }, want: "keeps a until 12:09",
		},
		"an unhealthy application does not return during the grace period": {
			bound: withHealth(newBinding(2), unhealthy, "a"),
			task:  withChange(evictionTask("a", 2, 1), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(b *workv1alpha2.ResourceBinding, c *Observations) {
				c.CanRunWorkload = oneOf("a")
				setFailedCluster(b, "7", "7")
			}, want: "keeps a until 12:09",
		},
		"a changed application returns": {
			bound: withHealth(newBinding(2), unhealthy, "a"), task: withChange(evictionTask("a", 2, 1), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(b *workv1alpha2.ResourceBinding, c *Observations) {
				c.CanRunWorkload = oneOf("a")
				setFailedCluster(b, "7", "8")
			}, want: "returns a; on a:2",
		},
		"a changed application with another cluster does not return": {
			bound: withHealth(newBinding(2, target("b", 2)), unhealthy, "a", "b"), task: withChange(evictionTask("a", 2, 1), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(b *workv1alpha2.ResourceBinding, c *Observations) {
				c.CanRunWorkload = oneOf("a")
				setFailedCluster(b, "7", "8")
			}, want: "keeps a until 12:09",
		},
		"a healthy application returns": {
			bound: withHealth(newBinding(2), healthy, "a"), task: withChange(evictionTask("a", 2, 1), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.CanRunWorkload = oneOf("a") }, want: "returns a; on a:2",
		},
		"grace period over: an application without another cluster returns": {
			bound: withHealth(newBinding(2), unhealthy, "a"), task: withChange(evictionTask("a", 2, 11), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.CanRunWorkload = oneOf("a") }, want: "returns a; on a:2",
		},
		"grace period over: an unhealthy application with another unhealthy copy is evicted": {
			bound: withHealth(newBinding(2, target("b", 2)), unhealthy, "a", "b"), task: withChange(evictionTask("a", 2, 11), of(workv1alpha2.EvictionProducerApplicationFailover)),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.CanRunWorkload = oneOf("a") },
			want:   "ends a: the grace period is over, the workload is not healthy there, and it is placed in b",
		},
		"grace period over: a healthy application stays while no other copy is healthy": {
			bound: withHealth(withHealth(newBinding(2, target("b", 2)), healthy, "a"), unhealthy, "b"), task: withChange(evictionTask("a", 2, 11), of(workv1alpha2.EvictionProducerApplicationFailover)),
			want: "keeps a; held: the workload is not known to be healthy in b",
		},
		"evictions by other producers do not return": {
			bound: newBinding(2), task: withChange(evictionTask("a", 2, 1), of("other")),
			change: func(_ *workv1alpha2.ResourceBinding, c *Observations) { c.CanRunWorkload = oneOf("a") }, want: "keeps a until 12:09",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			circumstances := defaultObservations()
			test.bound.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{test.task}
			if test.change != nil {
				test.change(test.bound, &circumstances)
			}
			before := test.bound.DeepCopy()
			if diff := cmp.Diff(test.want, describeOutcome(DecideEvictions(test.bound, circumstances))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.bound); diff != "" {
				t.Errorf("the binding was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// describeOutcome returns the outcome as text.
func describeOutcome(o Outcome) string {
	var said []string
	for _, task := range o.Tasks {
		kept := "keeps " + task.FromCluster
		if !o.NextCheck.IsZero() {
			kept += " until " + o.NextCheck.Format("15:04")
		}
		said = append(said, kept)
	}
	for _, ended := range o.Ended {
		said = append(said, fmt.Sprintf("ends %s: %s", ended.Task.FromCluster, ended.Reason))
	}
	for _, held := range o.Held {
		said = append(said, "held: "+held.Reason)
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

func TestApplicationReturnsToLastFailedCluster(t *testing.T) {
	b := withHealth(newBinding(2), unhealthy, "a", "b")
	setFailedCluster(b, "7", "7")
	b.Annotations[workv1alpha2.FailedInAnnotation] = `{"template":"7","clusters":{"a":"2026-05-01T11:39:00Z","b":"2026-05-01T11:48:00Z"}}`
	first, last := evictionTask("a", 2, 21), evictionTask("b", 2, 12)
	first.Producer, last.Producer = workv1alpha2.EvictionProducerApplicationFailover, workv1alpha2.EvictionProducerApplicationFailover
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{first, last}
	circumstances := defaultObservations()
	circumstances.CanRunWorkload = oneOf("a", "b")
	if diff := cmp.Diff("keeps a; held: no other cluster takes the workload; returns b; on b:2", describeOutcome(DecideEvictions(b, circumstances))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	circumstances.CanRunWorkload = oneOf("a")
	if outcome := DecideEvictions(b, circumstances); len(outcome.Returned) != 1 || outcome.Returned[0].Task.FromCluster != "a" {
		t.Errorf("the last cluster cannot run it, and it does not return to the first: %s", describeOutcome(outcome))
	}
}

func TestDuplicatedWorkloadReturnsToAllClusters(t *testing.T) {
	b := newBinding(2)
	b.Spec.Placement.ReplicaScheduling = nil
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{evictionTask("a", 2, 1), evictionTask("b", 2, 1), evictionTask("c", 2, 1)}
	circumstances := defaultObservations()
	circumstances.CanRunWorkload = oneOf("a", "c")
	outcome := DecideEvictions(b, circumstances)
	if diff := cmp.Diff([]workv1alpha2.TargetCluster{target("a", 2), target("c", 2)}, outcome.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if len(outcome.Tasks) != 1 || outcome.Tasks[0].FromCluster != "b" {
		t.Errorf("tasks left: %+v", outcome.Tasks)
	}
}

func TestUnhealthyTargetsInMessageAreBounded(t *testing.T) {
	b := newBinding(12)
	for i := range 12 {
		b.Spec.Clusters = append(b.Spec.Clusters, target(fmt.Sprintf("m%02d", i), 1))
	}
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{evictionTask("a", 2, 11)}
	outcome := DecideEvictions(b, defaultObservations())
	if len(outcome.Held) != 1 || !strings.HasSuffix(outcome.Held[0].Reason, "m08, m09 and 2 more") {
		t.Errorf("held: %+v", outcome.Held)
	}
}

// drawBinding returns a binding with arbitrary targets, statuses and tasks.
func drawBinding(t *rapid.T) *workv1alpha2.ResourceBinding {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	b := newBinding(rapid.Int32Range(0, 6).Draw(t, "replicas"))
	if rapid.Bool().Draw(t, "duplicated") {
		b.Spec.Placement.ReplicaScheduling = nil
	}
	for _, cluster := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(t, "targets") {
		b.Spec.Clusters = append(b.Spec.Clusters, target(cluster, rapid.Int32Range(0, 4).Draw(t, "on target")))
	}
	for _, cluster := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(t, "reports") {
		withHealth(b, rapid.SampledFrom([]workv1alpha2.ResourceHealth{healthy, unhealthy, workv1alpha2.ResourceUnknown}).Draw(t, "health"), cluster)
	}
	for _, cluster := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(t, "tasks") {
		task := evictionTask(cluster, rapid.Int32Range(0, 4).Draw(t, "leaving"), rapid.IntRange(0, 20).Draw(t, "minutes"))
		task.PurgeMode = rapid.SampledFrom([]policyv1alpha1.PurgeMode{"", "Gracefully", "Directly", "Never"}).Draw(t, "mode")
		task.Producer = rapid.SampledFrom([]string{workv1alpha2.EvictionProducerTaintManager, workv1alpha2.EvictionProducerApplicationFailover, "other"}).Draw(t, "producer")
		task.SuppressDeletion = rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, "suppressed")
		if rapid.Bool().Draw(t, "new") {
			task.CreationTimestamp = nil
		}
		b.Spec.GracefulEvictionTasks = append(b.Spec.GracefulEvictionTasks, task)
	}
	b.Generation = rapid.Int64Range(3, 4).Draw(t, "generation")
	setFailedCluster(b, "7", rapid.SampledFrom([]string{"7", "8"}).Draw(t, "template"))
	return b
}

func drawObservations(t *rapid.T) Observations {
	some := func(label string) func(string) bool {
		chosen := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d"})).Draw(t, label)
		return oneOf(chosen...)
	}
	return Observations{
		Now: noon, Timeout: time.Duration(rapid.IntRange(0, 15).Draw(t, "timeout")) * time.Minute,
		IsStatusCurrent: some("proven"), IsCopyGone: some("emptied"), IsUnregistered: some("removed"), CanRunWorkload: some("habitable"),
	}
}

func TestOldCopyIsDeletedOnlyWhenReplacedOrConfirmed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, c := drawBinding(t), drawObservations(t)
		outcome := DecideEvictions(b, c)
		proven := func(name string) bool {
			return c.IsStatusCurrent(name) && slices.ContainsFunc(b.Status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
				return item.ClusterName == name && item.Health == healthy
			})
		}
		for _, ended := range outcome.Ended {
			task := ended.Task
			switch {
			case task.SuppressDeletion != nil && !*task.SuppressDeletion, c.IsUnregistered(task.FromCluster), c.IsCopyGone(task.FromCluster):
				continue // a user confirmed the deletion, or the copy no longer exists
			case task.SuppressDeletion != nil, task.PurgeMode == policyv1alpha1.PurgeModeNever, task.PurgeMode == policyv1alpha1.PurgeModeDirectly:
				t.Fatalf("task %+v ended: %s", task, ended.Reason)
			}
			late := !c.Now.Before(task.CreationTimestamp.Add(c.Timeout))
			if late && IsFullyPlaced(&b.Spec) && taskKeepsFailedCopy(&task) && !slices.ContainsFunc(b.Status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
				return item.ClusterName == task.FromCluster && item.Health == healthy
			}) {
				continue // the failed application has other clusters
			}
			if !IsFullyPlaced(&b.Spec) || !slices.ContainsFunc(targetNames(&b.Spec), proven) {
				t.Fatalf("task %+v ended without a healthy copy anywhere: %s", task, ended.Reason)
			}
			if !late && (b.Generation != b.Status.SchedulerObservedGeneration || !allOf(targetNames(&b.Spec), proven)) {
				t.Fatalf("task %+v ended before its time although not all is healthy: %s", task, ended.Reason)
			}
		}
	})
}

func allOf(names []string, holds func(string) bool) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !holds(name) })
}

func TestEachTaskIsKeptEndedOrReturned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, c := drawBinding(t), drawObservations(t)
		outcome := DecideEvictions(b, c)
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
		if !outcome.NextCheck.IsZero() && !outcome.NextCheck.After(c.Now) {
			t.Fatalf("the next check at %s is not after %s", outcome.NextCheck, c.Now)
		}
		begun := !slices.ContainsFunc(b.Spec.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool { return task.CreationTimestamp.IsZero() })
		b.Spec.Clusters, b.Spec.GracefulEvictionTasks = outcome.Clusters, outcome.Tasks
		if len(outcome.Returned)+len(outcome.Ended) > 0 || !begun {
			return // a task that ends or returns affects the other tasks
		}
		if diff := cmp.Diff(outcome.Tasks, DecideEvictions(b, c).Tasks); diff != "" {
			t.Fatalf("a second call decides differently (-first +second):\n%s", diff)
		}
	})
}
