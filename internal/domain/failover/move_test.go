package failover

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

var moveTime = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

func targetsOf(replicas map[string]int32, order ...string) []workv1alpha2.TargetCluster {
	targets := make([]workv1alpha2.TargetCluster, len(order))
	for i, name := range order {
		targets[i] = workv1alpha2.TargetCluster{Name: name, Replicas: replicas[name]}
	}
	return targets
}

// describeTasks returns each task's cluster, producer and replicas.
func describeTasks(spec *workv1alpha2.ResourceBindingSpec) []string {
	var texts []string
	for _, task := range spec.GracefulEvictionTasks {
		text := task.FromCluster + " by " + task.Producer
		if task.Replicas != nil {
			text += fmt.Sprintf(" with %d", *task.Replicas)
		}
		texts = append(texts, text)
	}
	return texts
}

func TestMove(t *testing.T) {
	divided := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	tests := map[string]struct {
		placement     *policyv1alpha1.Placement
		before, after []workv1alpha2.TargetCluster
		tasks         []workv1alpha2.GracefulEvictionTask
		terminating   string
		want          []string
	}{
		"a first scheduling evicts nothing":         {after: targetsOf(nil, "m1")},
		"a copy that moves stays until then":        {before: targetsOf(nil, "m1"), after: targetsOf(nil, "m2"), want: []string{"m1 by Scheduler"}},
		"a cluster that stays is not evicted":       {before: targetsOf(nil, "m1", "m2"), after: targetsOf(nil, "m2", "m3"), want: []string{"m1 by Scheduler"}},
		"a cluster without replacement is left":     {before: targetsOf(nil, "m1", "m2"), after: targetsOf(nil, "m2")},
		"a cluster that is unregistered is left":    {before: targetsOf(nil, "m1"), after: targetsOf(nil, "m2"), terminating: "m1"},
		"the task contains the replicas that move":  {placement: divided, before: targetsOf(map[string]int32{"m1": 3}, "m1"), after: targetsOf(map[string]int32{"m2": 3}, "m2"), want: []string{"m1 by Scheduler with 3"}},
		"replicas that move to a cluster that has":  {placement: divided, before: targetsOf(map[string]int32{"m1": 3, "m2": 1}, "m1", "m2"), after: targetsOf(map[string]int32{"m2": 4}, "m2"), want: []string{"m1 by Scheduler with 3"}},
		"a scale-down that empties a cluster":       {placement: divided, before: targetsOf(map[string]int32{"m1": 3, "m2": 1}, "m1", "m2"), after: targetsOf(map[string]int32{"m1": 2}, "m1")},
		"a cluster whose replicas were descheduled": {placement: divided, before: targetsOf(map[string]int32{"m2": 1}, "m1", "m2"), after: targetsOf(map[string]int32{"m2": 4}, "m2")},
		"a cluster whose replicas are not known":    {placement: divided, before: targetsOf(nil, "m1", "m2"), after: targetsOf(map[string]int32{"m2": 4}, "m2"), want: []string{"m1 by Scheduler"}},
		"a target again": {before: targetsOf(nil, "m2"), after: targetsOf(nil, "m1"),
			tasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", Producer: workv1alpha2.EvictionProducerScheduler}}, want: []string{"m2 by Scheduler"}},
		"the task of another producer stays": {before: targetsOf(nil, "m2", "m1"), after: targetsOf(nil, "m3"),
			tasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", Producer: "TaintManager"}}, want: []string{"m1 by TaintManager", "m2 by Scheduler"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{Replicas: 4, Placement: test.placement, Clusters: test.before, GracefulEvictionTasks: test.tasks}
			Move(spec, test.after, func(name string) bool { return name == test.terminating }, moveTime)
			if diff := cmp.Diff(test.want, describeTasks(spec)); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.after, spec.Clusters); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			for _, task := range spec.GracefulEvictionTasks[min(len(test.tasks), len(spec.GracefulEvictionTasks)):] {
				if task.PurgeMode != policyv1alpha1.PurgeModeGracefully || task.CreationTimestamp == nil || task.Message == "" || task.Reason != workv1alpha2.EvictionReasonRescheduled {
					t.Errorf("task %+v", task)
				}
			}
		})
	}
}

// For any decision of a scheduler, a copy in a registered cluster is a target or is being evicted, or
// nothing was moved to other clusters.
func TestMoveKeepsEveryCopyThatIsReplaced(t *testing.T) {
	names := rapid.SliceOfDistinct(rapid.StringMatching(`m[0-6]`), rapid.ID)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) []workv1alpha2.TargetCluster {
			replicas := map[string]int32{}
			clusters := names.Draw(t, label)
			for _, name := range clusters {
				replicas[name] = rapid.Int32Range(1, 5).Draw(t, label+" replicas")
			}
			return targetsOf(replicas, clusters...)
		}
		spec := &workv1alpha2.ResourceBindingSpec{Replicas: 5, Clusters: draw("before")}
		for _, label := range []string{"first", "second"} {
			before := spec.DeepCopy()
			Move(spec, draw(label), func(string) bool { return false }, moveTime)
			grows := false
			for _, target := range spec.Clusters {
				i := indexOf(before.Clusters, target.Name)
				grows = grows || i < 0 || before.Clusters[i].Replicas < target.Replicas
				if IsEvicting(spec, target.Name) {
					t.Fatalf("target %s is evicted", target.Name)
				}
			}
			for _, target := range before.Clusters {
				if grows && !HasTarget(spec, target.Name) && !IsEvicting(spec, target.Name) {
					t.Fatalf("%s has neither target nor task in %+v", target.Name, spec)
				}
			}
		}
	})
}

func indexOf(targets []workv1alpha2.TargetCluster, name string) int {
	for i := range targets {
		if targets[i].Name == name {
			return i
		}
	}
	return -1
}

func TestHasHealthyCopies(t *testing.T) {
	divided := &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	healthy := func(clusters ...string) []workv1alpha2.AggregatedStatusItem {
		var items []workv1alpha2.AggregatedStatusItem
		for _, cluster := range clusters {
			items = append(items, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Health: workv1alpha2.ResourceHealthy})
		}
		return items
	}
	unapplied := healthy("m1")
	unapplied[0].Applied = false
	tests := map[string]struct {
		spec   workv1alpha2.ResourceBindingSpec
		status []workv1alpha2.AggregatedStatusItem
		want   bool
	}{
		"no cluster":             {workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}}, nil, false},
		"scaled to 0":            {workv1alpha2.ResourceBindingSpec{Placement: divided, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{}}, nil, true},
		"no cluster, 3 replicas": {workv1alpha2.ResourceBindingSpec{Placement: divided, Replicas: 3}, nil, false},
		"all replicas healthy":   {workv1alpha2.ResourceBindingSpec{Placement: divided, Replicas: 3, Clusters: targetsOf(map[string]int32{"m1": 3}, "m1")}, healthy("m1"), true},
		"too few replicas":       {workv1alpha2.ResourceBindingSpec{Placement: divided, Replicas: 3, Clusters: targetsOf(map[string]int32{"m1": 2}, "m1")}, healthy("m1"), false},
		"one of two healthy":     {workv1alpha2.ResourceBindingSpec{Clusters: targetsOf(nil, "m1", "m2")}, healthy("m1"), false},
		"not applied":            {workv1alpha2.ResourceBindingSpec{Clusters: targetsOf(nil, "m1")}, unapplied, false},
		"as a dependency":        {workv1alpha2.ResourceBindingSpec{RequiredBy: []workv1alpha2.BindingSnapshot{{Clusters: targetsOf(nil, "m1")}}}, healthy("m1"), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := &workv1alpha2.ResourceBinding{Spec: test.spec, Status: workv1alpha2.ResourceBindingStatus{AggregatedStatus: test.status}}
			if got := HasHealthyCopies(bound); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
