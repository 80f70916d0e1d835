package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestPlacementChanged(t *testing.T) {
	oneAffinity := policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a")}
	groups := func(terms ...policyv1alpha1.ClusterAffinityTerm) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ClusterAffinities: terms}
	}
	first, second := affinityGroup("first", "a"), affinityGroup("second", "b")
	tests := map[string]struct {
		before, after policyv1alpha1.Placement
		observing     string
		want          bool
	}{
		"the same":                     {oneAffinity, oneAffinity, "", false},
		"an empty list equals no list": {oneAffinity, policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a"), SpreadConstraints: []policyv1alpha1.SpreadConstraint{}}, "", false},
		"another affinity":             {oneAffinity, policyv1alpha1.Placement{ClusterAffinity: clustersNamed("b")}, "", true},
		"an additional toleration": {oneAffinity, policyv1alpha1.Placement{
			ClusterAffinity: clustersNamed("a"), ClusterTolerations: []corev1.Toleration{{Key: "k"}}}, "", true},
		"an additional spread constraint": {oneAffinity, policyv1alpha1.Placement{
			ClusterAffinity: clustersNamed("a"), SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 2)}}, "", true},
		"another strategy":                    {oneAffinity, policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a"), ReplicaScheduling: aggregate}, "", true},
		"another group added":                 {groups(first), groups(first, second), "first", false},
		"groups reordered":                    {groups(first, second), groups(second, first), "first", false},
		"another group removed":               {groups(first, second), groups(first), "first", false},
		"another group changed":               {groups(first, second), groups(first, affinityGroup("second", "c")), "first", false},
		"the group in use changed":            {groups(first, second), groups(affinityGroup("first", "c"), second), "first", true},
		"the group in use removed":            {groups(first, second), groups(second), "first", true},
		"the group in use is new":             {groups(second), groups(first, second), "first", true},
		"groups changed while none is in use": {groups(first), groups(first, second), "", true},
		"from one affinity to groups":         {oneAffinity, groups(first), "first", true},
		"workload affinity changed, no groups in use": {oneAffinity, policyv1alpha1.Placement{
			ClusterAffinity: clustersNamed("a"), WorkloadAffinity: &policyv1alpha1.WorkloadAffinity{}}, "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := PlacementChanged(&test.after, mustEncodePlacement(t, &test.before), test.observing); got != test.want {
				t.Errorf("PlacementChanged = %v, want %v", got, test.want)
			}
		})
	}
}

func TestPlacementChangedByAnnotation(t *testing.T) {
	placement := &policyv1alpha1.Placement{}
	if !PlacementChanged(placement, "", "") {
		t.Error("an empty annotation does not count as a change")
	}
	if PlacementChanged(placement, "{no json", "") {
		t.Error("an annotation that is not valid JSON counts as a change")
	}
}

func TestAppliedPlacementIsCompact(t *testing.T) {
	got := mustEncodePlacement(t, &policyv1alpha1.Placement{ClusterAffinity: clustersNamed("a", "b")})
	if want := `{"clusterAffinity":{"clusterNames":["a","b"]}}`; got != want {
		t.Errorf("applied placement %s, want %s", got, want)
	}
}

func TestReplicasChanged(t *testing.T) {
	divided := policyv1alpha1.Placement{ReplicaScheduling: aggregate}
	copied := policyv1alpha1.Placement{ReplicaScheduling: duplicate}
	components := []workv1alpha2.Component{{Name: "x", Replicas: 1}, {Name: "y", Replicas: 2}}
	placed := []workv1alpha2.TargetComponent{{Name: "x", Replicas: 1}, {Name: "y", Replicas: 2}}
	outdated := []workv1alpha2.TargetComponent{{Name: "x", Replicas: 1}, {Name: "y", Replicas: 1}}
	of := func(placement policyv1alpha1.Placement, targets ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBindingSpec {
		spec := deployment(0, placement, targets...)
		spec.Components = components
		return spec
	}
	gate := Features{MultiplePodTemplates: true}
	tests := map[string]struct {
		spec     *workv1alpha2.ResourceBindingSpec
		features Features
		want     bool
	}{
		"no strategy":                                {deployment(5, policyv1alpha1.Placement{}, target("a", 3)), Features{}, false},
		"divided, the sum is right":                  {deployment(5, divided, target("a", 3), target("b", 2)), Features{}, false},
		"divided, the sum is wrong":                  {deployment(5, divided, target("a", 3)), Features{}, true},
		"duplicated, all clusters have all replicas": {deployment(5, copied, target("a", 5), target("b", 5)), Features{}, false},
		"duplicated, one cluster has fewer":          {deployment(5, copied, target("a", 5), target("b", 4)), Features{}, true},
		"duplicated, no targets":                     {deployment(5, copied), Features{}, false},
		"components without targets":                 {of(divided), gate, true},
		"components without targets, gate off":       {of(divided), Features{}, false},
		"components as recorded":                     {of(divided, workv1alpha2.TargetCluster{Name: "a", Components: placed}), gate, false},
		"a component was scaled":                     {of(divided, workv1alpha2.TargetCluster{Name: "a", Components: outdated}), gate, true},
		"components placed without being recorded":   {of(divided, workv1alpha2.TargetCluster{Name: "a"}), gate, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ReplicasChanged(test.spec, test.features); got != test.want {
				t.Errorf("ReplicasChanged = %v, want %v", got, test.want)
			}
		})
	}
}
