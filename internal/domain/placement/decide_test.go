package placement

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

var (
	noon        = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	equateEmpty = cmpopts.EquateEmpty()
)

// scheduledBinding returns a divided binding that was scheduled and whose status is up to date.
func scheduledBinding(t *testing.T) *workv1alpha2.ResourceBinding {
	placement := policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a", "b"), ReplicaScheduling: aggregate}
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-deployment", Namespace: "default", Generation: 3,
			Labels:      map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
			Annotations: map[string]string{policyv1alpha1.AppliedPlacementAnnotation: mustEncodePlacement(t, &placement)},
		},
		Spec: *deployment(5, placement, target("a", 3), target("b", 2)),
	}
	b.Status.SchedulerObservedGeneration = 3
	b.Status.LastScheduledTime = &metav1.Time{Time: noon}
	return b
}

// leftOutWithoutAPI divides the binding by weight over a, b, c and d, with the record that a cluster
// did not serve the kind.
func leftOutWithoutAPI(name string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement.ClusterAffinity, b.Spec.Placement.ReplicaScheduling = clustersNamed("a", "b", "c", "d"), evenly
		applied, _ := AppliedPlacement(b.Spec.Placement)
		b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = applied
		RecordClustersWithoutAPI(b, []string{name})
	}
}

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		change   func(*workv1alpha2.ResourceBinding)
		cluster  *clusterv1alpha1.Cluster
		features Features
		action   Action
		kind     ScheduleType
	}{
		"nothing changed": {action: ActionNone},
		"only the generation changed": {
			change: func(b *workv1alpha2.ResourceBinding) { b.Generation++ },
			action: ActionObserve,
		},
		"the affinity group in use is not recorded": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Generation++
				b.Spec.Placement.ClusterAffinity, b.Spec.Placement.ClusterAffinities = nil, []policyv1alpha1.ClusterAffinityTerm{affinityGroup("g", "a", "b")}
				b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = mustEncodePlacement(t, b.Spec.Placement)
			},
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"the placement changed": {
			change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ClusterAffinity = clustersNamed("a") },
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"never scheduled before": {
			change: func(b *workv1alpha2.ResourceBinding) { b.Annotations = nil },
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"scaled": {
			change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 6 },
			action: ActionSchedule, kind: ScaleSchedule,
		},
		"evicted from a cluster": {
			change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = b.Spec.Clusters[:1] },
			action: ActionSchedule, kind: ScaleSchedule,
		},
		"placement and replicas changed: the placement takes precedence": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity, b.Spec.Replicas = clustersNamed("a"), 6
			},
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"reschedule requested after the last scheduling": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: noon.Add(time.Second)}
			},
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"reschedule requested at the last scheduling": {
			change: func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: noon} },
			action: ActionNone,
		},
		"reschedule requested before the status shows the first scheduling": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Status.LastScheduledTime = nil
				binding.RecordScheduled(b, noon)
				b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: noon.Add(time.Second)}
			},
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"reschedule requested before the first scheduling, which the status does not show yet": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Status.LastScheduledTime = nil
				b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: noon.Add(-time.Second)}
				binding.RecordScheduled(b, noon)
			},
			action: ActionNone,
		},
		"reschedule requested though never scheduled": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: noon.Add(time.Second)}
				b.Status.LastScheduledTime = nil
			},
			action: ActionNone,
		},
		"duplicated workloads are always scheduled": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ReplicaScheduling = duplicate
				b.Spec.Clusters = []workv1alpha2.TargetCluster{target("a", 5)}
				b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = mustEncodePlacement(t, b.Spec.Placement)
			},
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"no strategy counts as duplicated": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ReplicaScheduling = nil
				b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = mustEncodePlacement(t, b.Spec.Placement)
			},
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"templates without replicas are always scheduled": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Replicas = 0
				b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a"}}
			},
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"a target cluster is being removed": {
			cluster: member("a", beingRemoved),
			action:  ActionSchedule, kind: ReconcileSchedule,
		},
		"another cluster is being removed": {
			cluster: member("z", beingRemoved),
			action:  ActionNone,
		},
		"a new taint does not move a divided workload": {
			cluster: member("a", tainted("k", "v", "NoSchedule")),
			action:  ActionNone,
		},
		"a cluster that was left out serves the kind now": {
			change: leftOutWithoutAPI("c"), cluster: member("c"),
			action: ActionSchedule, kind: ReconcileSchedule,
		},
		"a cluster that was left out still does not serve the kind": {
			change: leftOutWithoutAPI("c"), cluster: member("c", withoutAPIs),
			action: ActionNone,
		},
		"a cluster that was left out serves the kind but keeps new workloads away": {
			change: leftOutWithoutAPI("c"), cluster: member("c", tainted("k", "v", "NoSchedule")),
			action: ActionNone,
		},
		"a cluster that was left out serves the kind but is being removed": {
			change: leftOutWithoutAPI("c"), cluster: member("c", beingRemoved),
			action: ActionNone,
		},
		"a cluster that was left out serves the kind but is no longer selected": {
			change: leftOutWithoutAPI("z"), cluster: member("z"),
			action: ActionNone,
		},
		"another selected cluster serves the kind": {
			change: leftOutWithoutAPI("d"), cluster: member("c"),
			action: ActionNone,
		},
		"the record of clusters without the API is damaged": {
			change: func(b *workv1alpha2.ResourceBinding) {
				leftOutWithoutAPI("c")(b)
				b.Annotations[workv1alpha2.ClustersWithoutAPIAnnotation] = "c"
			},
			cluster: member("c"), action: ActionNone,
		},
		"components that are not placed yet": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Replicas, b.Spec.Clusters = 0, nil
				b.Spec.Components = []workv1alpha2.Component{{Name: "x", Replicas: 1}}
			},
			features: Features{MultiplePodTemplates: true},
			action:   ActionSchedule, kind: ScaleSchedule,
		},
		"a binding that is being deleted": {
			change: func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{Time: noon} },
			action: ActionRefuse,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := scheduledBinding(t)
			if test.change != nil {
				test.change(b)
			}
			lookup := func(name string) *clusterv1alpha1.Cluster {
				if test.cluster != nil && test.cluster.Name == name {
					return test.cluster
				}
				return nil
			}
			got, err := Decide(b, &b.Spec, &b.Status, lookup, test.features)
			if err != nil {
				t.Fatal(err)
			}
			if got.Action != test.action || got.Type != test.kind {
				t.Errorf("decided %+v, want %s %s", got, test.action, test.kind)
			}
			if got.Reason == "" {
				t.Error("the decision has no reason")
			}
		})
	}
}

func TestDecideRequiresPlacement(t *testing.T) {
	b := scheduledBinding(t)
	b.Spec.Placement = nil
	if _, err := Decide(b, &b.Spec, &b.Status, nil, Features{}); !errors.Is(err, ErrNoPlacement) {
		t.Errorf("error %v, want ErrNoPlacement", err)
	}
}

func TestIsHandledBy(t *testing.T) {
	yes, no := true, false
	tests := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		name   string
		want   bool
	}{
		"no scheduler named, default scheduler":      {name: "default-scheduler", want: true},
		"no scheduler named, other scheduler":        {name: "mine", want: false},
		"another scheduler named, default scheduler": {func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "mine" }, "default-scheduler", false},
		"named, same scheduler":                      {func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "mine" }, "mine", true},
		"scheduling suspended": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: &yes}
		}, "default-scheduler", false},
		"suspension lifted": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: &no}
		}, "default-scheduler", true},
		"dispatching suspended only":  {func(b *workv1alpha2.ResourceBinding) { b.Spec.Suspension = &workv1alpha2.Suspension{} }, "default-scheduler", true},
		"attached to another binding": {func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }, "default-scheduler", false},
		"an empty ID does not count": {func(b *workv1alpha2.ResourceBinding) {
			b.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: ""}
		}, "default-scheduler", false},
		"claimed by a cluster policy": {func(b *workv1alpha2.ResourceBinding) {
			b.Labels = map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}
		}, "default-scheduler", true},
		"managed by another kind": {func(b *workv1alpha2.ResourceBinding) {
			b.Labels = map[string]string{workv1alpha2.BindingManagedByLabel: "MultiClusterService"}
		}, "default-scheduler", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := scheduledBinding(t)
			if test.change != nil {
				test.change(b)
			}
			if got := IsHandledBy(b, &b.Spec, test.name); got != test.want {
				t.Errorf("Owned = %v, want %v", got, test.want)
			}
		})
	}
}

func TestIsAffectedByCluster(t *testing.T) {
	overflowing := affinityGroup("second", "b")
	overflowing.OverflowAffinities = []policyv1alpha1.OverflowAffinityTerm{{AffinityName: "more", ClusterAffinity: *clustersNamed("c")}}
	groups := policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{affinityGroup("first", "a"), overflowing}}
	tests := map[string]struct {
		placement *policyv1alpha1.Placement
		observing string
		observed  int64
		cluster   string
		want      bool
		failed    bool
	}{
		"no placement":                                     {nil, "", 1, "a", false, false},
		"no affinity":                                      {&policyv1alpha1.Placement{}, "", 1, "a", true, false},
		"an affinity that matches":                         {&policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a")}, "", 1, "a", true, false},
		"an affinity that does not match":                  {&policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a")}, "", 1, "b", false, false},
		"the group in use matches":                         {&groups, "second", 1, "b", true, false},
		"another group matches":                            {&groups, "second", 1, "a", false, false},
		"an overflow group of the one in use":              {&groups, "second", 1, "c", true, false},
		"the first group if none is in use":                {&groups, "", 1, "a", true, false},
		"the first group if the one in use is gone":        {&groups, "gone", 1, "a", true, false},
		"any cluster while the generation is not observed": {&groups, "second", 0, "z", true, false},
		"a group behind the one that failed":               {&groups, "first", 1, "c", true, true},
		"a target that no affinity selects":                {&policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a")}, "", 1, "target", true, false},
		"a target without a placement":                     {nil, "", 1, "target", true, false},
		"a group before the one that failed":               {&groups, "second", 1, "a", true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
			b.Spec.Placement, b.Spec.Clusters = test.placement, targets{target("target", 1)}
			b.Status.SchedulerObservedAffinityName = test.observing
			b.Status.SchedulerObservedGeneration = test.observed
			if test.failed {
				b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse}}
			}
			if got := IsAffectedByCluster(member(test.cluster), b, &b.Spec, &b.Status); got != test.want {
				t.Errorf("AffectedBy = %v, want %v", got, test.want)
			}
		})
	}
}
