package placement

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestTargetsWhenNoClusterFits(t *testing.T) {
	const lost = "0/2 clusters are available: no cluster matches the cluster affinity (clusterNames a, b)."
	current := targets{target("a", 2), target("b", 3)}
	tests := map[string]struct {
		change   func(*Input)
		clusters []*clusterv1alpha1.Cluster
		want     targets
		keeps    bool
		message  string
	}{
		"the clusters changed: targets are kept": {
			clusters: members("x", "y"), want: current, keeps: true, message: lost,
		},
		"the placement changed: targets are removed": {
			change:   func(in *Input) { in.AppliedPlacement = `{"clusterAffinity":{"clusterNames":["a"]}}` },
			clusters: members("x", "y"), message: lost,
		},
		"never scheduled before": {
			change:   func(in *Input) { in.AppliedPlacement = "" },
			clusters: members("x", "y"), message: lost,
		},
		"no clusters are known: targets are kept": {
			want: current, keeps: true, message: "0/0 clusters are available: no cluster exists.",
		},
		"a target cluster is being removed: the others are kept": {
			clusters: []*clusterv1alpha1.Cluster{member("a", beingRemoved), member("x")},
			want:     current[1:], keeps: true,
			message: "0/2 clusters are available: cluster a: being removed.",
		},
		"a target cluster that the affinity does not select any more is removed": {
			change: func(in *Input) {
				in.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
				in.AppliedPlacement = mustEncodePlacement(t, in.Spec.Placement)
			},
			clusters: []*clusterv1alpha1.Cluster{member("a"), member("b", withoutAPIs, func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"env": "prod"} },
				func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} })},
			keeps: true, message: "0/2 clusters are available: cluster b: being removed.",
		},
		"a target cluster that is being evicted is kept": {
			change: func(in *Input) {
				in.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "a"}, {FromCluster: "b"}}
			},
			clusters: members("a", "b"), want: current, keeps: true,
			message: "0/2 clusters are available: clusters a, b: eviction in progress.",
		},
		"a reschedule request does not count as a new placement": {
			change:   func(in *Input) { *in = withRescheduleRequest(*in) },
			clusters: members("x", "y"), want: current, keeps: true, message: lost,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := deployment(5, policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a", "b"), ReplicaScheduling: aggregate}, current...)
			in := newInput(spec, test.clusters, nil)
			in.AppliedPlacement = mustEncodePlacement(t, spec.Placement)
			if test.change != nil {
				test.change(&in)
			}
			checkSchedule(t, in, test.want, test.message)
			_, err := Schedule(in)
			var fit *FitError
			if !errors.As(err, &fit) || fit.KeepsPrevious != test.keeps {
				t.Errorf("error %#v, want a FitError with KeepsPrevious %v", err, test.keeps)
			}
		})
	}
}

func TestScheduleRequiresPlacement(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets{target("a", 1)}}
	checkSchedule(t, newInput(spec, members("a"), nil), spec.Clusters, ErrNoPlacement.Error())
}

func TestAffinityGroups(t *testing.T) {
	placement := policyv1alpha1.Placement{
		ReplicaScheduling: aggregate,
		ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{affinityGroup("one", "a"), affinityGroup("two", "b"), affinityGroup("three", "c")},
	}
	noMatch := func(group string) string {
		return fmt.Sprintf("0/3 clusters are available: no cluster matches the cluster affinity group %q.", group)
	}
	tooFew := func(free int, why string) string {
		return fmt.Sprintf("failed to assign replicas: failed to scale up: Clusters available replicas %d are not enough to schedule: %s.", free, why)
	}
	tests := map[string]struct {
		clusters  []string
		capacity  map[string]int32
		observing string
		fresh     bool
		current   targets
		want      targets
		affinity  string
		failed    map[string]string
		message   string
	}{
		"the first group fits":                                  {clusters: []string{"a", "b", "c"}, want: targets{target("a", 5)}, affinity: "one"},
		"not enough capacity: next group":                       {clusters: []string{"a", "b", "c"}, capacity: map[string]int32{"a": 1}, want: targets{target("b", 5)}, affinity: "two", failed: map[string]string{"one": tooFew(1, "5 replicas wanted, room for 1 (a 1)")}},
		"no cluster fits: next group":                           {clusters: []string{"b", "x", "y"}, want: targets{target("b", 5)}, affinity: "two", failed: map[string]string{"one": noMatch("one")}},
		"no return to an earlier group by itself":               {clusters: []string{"a", "b", "c"}, observing: "two", want: targets{target("b", 5)}, affinity: "two"},
		"return to the first group on request":                  {clusters: []string{"a", "b", "c"}, observing: "two", fresh: true, want: targets{target("a", 5)}, affinity: "one"},
		"return to the first group if the group in use is gone": {clusters: []string{"a", "b", "c"}, observing: "zero", want: targets{target("a", 5)}, affinity: "one"},
		"no cluster of the group in use fits: return to the first group": {
			clusters: []string{"a", "x", "c"}, observing: "two", want: targets{target("a", 5)}, affinity: "one", failed: map[string]string{"two": noMatch("two")},
		},
		"only the last group fits": {
			clusters: []string{"x", "y", "c"}, observing: "two", want: targets{target("c", 5)}, affinity: "three",
			failed: map[string]string{"two": noMatch("two"), "one": noMatch("one")},
		},
		"all failed, in the first no cluster fits": {
			clusters: []string{"x", "y", "c"}, capacity: map[string]int32{"c": 0}, observing: "two", current: targets{target("b", 5)},
			affinity: "two", message: noMatch("two"),
			failed: map[string]string{"two": noMatch("two"), "one": noMatch("one"), "three": tooFew(0, "5 replicas wanted, room for 0 (c 0)")},
		},
		"all failed, in the first not enough capacity": {
			clusters: []string{"x", "b", "y"}, capacity: map[string]int32{"b": 0}, observing: "two", current: targets{target("b", 4)},
			want:     targets{target("b", 4)},
			affinity: "two",
			failed:   map[string]string{"two": tooFew(0, "1 more replica wanted, room for 0 (b 0)"), "one": noMatch("one"), "three": noMatch("three")},
			message:  tooFew(0, "1 more replica wanted, room for 0 (b 0)"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := newInput(deployment(5, placement, test.current...), members(test.clusters...), test.capacity)
			if test.fresh {
				in = withRescheduleRequest(in)
			}
			in.Status.SchedulerObservedAffinityName = test.observing
			result := checkSchedule(t, in, test.want, test.message)
			if result.AffinityName != test.affinity {
				t.Errorf("group %q in use, want %q", result.AffinityName, test.affinity)
			}
			failed := map[string]string{}
			for _, failure := range result.FailedGroups {
				failed[failure.Name] = failure.Err.Error()
				if placement.ClusterAffinities[failure.Index].AffinityName != failure.Name {
					t.Errorf("failure of %q has index %d", failure.Name, failure.Index)
				}
			}
			if diff := cmp.Diff(test.failed, failed, equateEmpty); diff != "" {
				t.Errorf("failed groups differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTargetsAreKeptWhenAllAffinityGroupsFail(t *testing.T) {
	placement := policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{affinityGroup("one", "a"), affinityGroup("two", "b")}}
	in := newInput(deployment(5, placement, target("b", 5)), members("x"), nil)
	in.AppliedPlacement = mustEncodePlacement(t, &placement)
	in.Status.SchedulerObservedAffinityName = "two"
	checkSchedule(t, in, targets{target("b", 5)},
		`0/1 clusters are available: no cluster matches the cluster affinity group "two".`)
}

func TestOverflow(t *testing.T) {
	first := affinityGroup("home", "a", "b")
	first.OverflowAffinities = []policyv1alpha1.OverflowAffinityTerm{
		{AffinityName: "near", ClusterAffinity: *clustersNamed("c")}, {AffinityName: "far", ClusterAffinity: *clustersNamed("d")},
	}
	free := map[string]int32{"a": 4, "b": 3, "c": 8, "d": 2}
	tests := map[string]struct {
		replicas  int32
		strategy  *policyv1alpha1.ReplicaSchedulingStrategy
		capacity  map[string]int32
		current   targets
		want      targets
		wantError string
	}{
		"replicas that do not fit overflow":            {10, dynamicWeight, free, nil, targets{target("a", 4), target("b", 3), target("c", 3)}, ""},
		"all replicas fit without overflow":            {7, dynamicWeight, free, nil, targets{target("a", 4), target("b", 3)}, ""},
		"every tier is needed":                         {17, aggregate, free, nil, targets{target("a", 4), target("b", 3), target("c", 8), target("d", 2)}, ""},
		"not enough capacity in all tiers":             {18, aggregate, free, nil, nil, "failed to assign replicas: Clusters available replicas are not enough to schedule: 18 replicas wanted, room for 17 (a 4, b 3, c 8, d 2)."},
		"first tier full: new replicas overflow":       {9, dynamicWeight, map[string]int32{"c": 8, "a": 0, "b": 0, "d": 2}, targets{target("a", 4), target("b", 3)}, targets{target("a", 4), target("b", 3), target("c", 2)}, ""},
		"shrinking empties the last tier first":        {8, dynamicWeight, map[string]int32{"a": 0, "b": 0, "c": 0, "d": 0}, targets{target("a", 4), target("b", 3), target("c", 3)}, targets{target("a", 4), target("b", 3), target("c", 1)}, ""},
		"shrinking further leaves only the first tier": {5, aggregate, map[string]int32{"a": 0, "b": 0, "c": 0, "d": 0}, targets{target("a", 4), target("b", 3), target("c", 3)}, targets{target("a", 3), target("b", 2)}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			placement := policyv1alpha1.Placement{
				ReplicaScheduling: test.strategy, ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{first},
			}
			checkSchedule(t, newInput(deployment(test.replicas, placement, test.current...), members("d", "c", "b", "a"), test.capacity), test.want, test.wantError)
		})
	}
}

func TestTemplatesWithoutReplicasDoNotOverflow(t *testing.T) {
	first := affinityGroup("home", "a")
	first.OverflowAffinities = []policyv1alpha1.OverflowAffinityTerm{{AffinityName: "near", ClusterAffinity: *clustersNamed("b")}}
	placement := policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{first}}
	checkSchedule(t, newInput(deployment(0, placement), members("a", "b"), nil), targets{{Name: "a"}}, "")
}

func TestTerminatingClusterIsNoTargetDespiteError(t *testing.T) {
	clusters := func() []*clusterv1alpha1.Cluster {
		return append(members("a"), member("b", beingRemoved), member("c", withoutAPIs))
	}
	current := targets{target("a", 2), target("b", 3)}
	tests := map[string]struct {
		placement *policyv1alpha1.Placement
		capacity  map[string]int32
		want      string
	}{
		"fewer clusters than the spread constraint requires": {
			placement: &policyv1alpha1.Placement{ReplicaScheduling: aggregate, SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 2, 2)}},
			want: "failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups: " +
				"2 clusters wanted, 1 feasible (a); cluster b: being removed; cluster c: does not serve apps/v1 Deployment",
		},
		"not enough capacity in the others": {
			placement: &policyv1alpha1.Placement{ReplicaScheduling: aggregate}, capacity: map[string]int32{"a": 1},
			want: "failed to assign replicas: failed to scale up: Clusters available replicas 1 are not enough to schedule: " +
				"3 more replicas wanted, room for 1 (a 1); cluster b: being removed; cluster c: does not serve apps/v1 Deployment.",
		},
		"an unsupported strategy": {
			placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Strange"}},
			want:      `failed to assign replicas: unsupported replica scheduling strategy, type "Strange" and preference ""`,
		},
		"no placement": {want: ErrNoPlacement.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := deployment(5, policyv1alpha1.Placement{}, current...)
			spec.Placement = test.placement
			in := newInput(spec, clusters(), test.capacity)
			if test.placement != nil {
				in.AppliedPlacement = mustEncodePlacement(t, test.placement)
			}
			checkSchedule(t, in, current[:1], test.want)
		})
	}
}

func TestDescribeShortfall(t *testing.T) {
	divided := policyv1alpha1.Placement{ReplicaScheduling: aggregate}
	tests := map[string]struct {
		spec *workv1alpha2.ResourceBindingSpec
		want string
	}{
		"all replicas are placed":          {deployment(5, divided, target("a", 2), target("b", 3)), ""},
		"replicas are missing":             {deployment(5, divided, target("a", 2), target("b", 1)), "3 of 5 replicas are placed: {a:2, b:1}."},
		"duplicated replicas are complete": {deployment(5, policyv1alpha1.Placement{}, target("a", 5)), ""},
		"no target":                        {deployment(5, divided), "It has no cluster left."},
		"a kind without replicas":          {&workv1alpha2.ResourceBindingSpec{Placement: &divided, Clusters: targets{{Name: "a"}}}, ""},
		"a binding without a placement":    {&workv1alpha2.ResourceBindingSpec{Replicas: 3, Clusters: targets{{Name: "a"}}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := DescribeShortfall(test.spec); got != test.want {
				t.Errorf("Shortfall = %q, want %q", got, test.want)
			}
		})
	}
}
