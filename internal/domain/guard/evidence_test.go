package guard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func named(clusters ...string) policyv1alpha1.ClusterAffinity {
	return policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
}

func TestAsked(t *testing.T) {
	affinity := named("m1", "m2")
	original := &workv1alpha2.ResourceBindingSpec{
		Replicas: 2, Placement: &policyv1alpha1.Placement{ClusterAffinity: &affinity},
		Clusters:              []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "m3"}},
	}
	tests := map[string]struct {
		change func(*workv1alpha2.ResourceBindingSpec)
		want   bool
	}{
		"nothing":                       {func(*workv1alpha2.ResourceBindingSpec) {}, false},
		"what a scheduler decides":      {func(s *workv1alpha2.ResourceBindingSpec) { s.Clusters = nil }, false},
		"another version of a template": {func(s *workv1alpha2.ResourceBindingSpec) { s.Resource.ResourceVersion = "9" }, false},
		"an eviction that begins": {func(s *workv1alpha2.ResourceBindingSpec) {
			s.GracefulEvictionTasks = append(s.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{FromCluster: "m1"})
		}, false},
		"an eviction that ends":           {func(s *workv1alpha2.ResourceBindingSpec) { s.GracefulEvictionTasks = nil }, false},
		"replicas, as an autoscaler does": {func(s *workv1alpha2.ResourceBindingSpec) { s.Replicas = 1 }, false},
		"a placement":                     {func(s *workv1alpha2.ResourceBindingSpec) { s.Placement.ClusterAffinity.ClusterNames = []string{"m2"} }, true},
		"the end of a placement":          {func(s *workv1alpha2.ResourceBindingSpec) { s.Placement = nil }, true},
		"the wish to schedule anew": {func(s *workv1alpha2.ResourceBindingSpec) {
			s.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(1, 0)}
		}, true},
		"components": {func(s *workv1alpha2.ResourceBindingSpec) {
			s.Components = []workv1alpha2.Component{{Name: "jm", Replicas: 1}}
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed := original.DeepCopy()
			test.change(changed)
			if got := Asked(original, changed); got != test.want {
				t.Errorf("Asked = %v", got)
			}
		})
	}
}

func TestEvicted(t *testing.T) {
	from := func(clusters ...string) *workv1alpha2.ResourceBindingSpec {
		spec := &workv1alpha2.ResourceBindingSpec{}
		for _, cluster := range clusters {
			spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{FromCluster: cluster})
		}
		return spec
	}
	tests := map[string]struct {
		before, after *workv1alpha2.ResourceBindingSpec
		want          []string
	}{
		"no eviction":                       {from(), from(), nil},
		"an eviction that begins":           {from(), from("m1"), nil},
		"an eviction that goes on":          {from("m1"), from("m1"), nil},
		"one of two ends":                   {from("m1", "m2"), from("m2"), []string{"m1"}},
		"both end":                          {from("m1", "m2"), from(), []string{"m1", "m2"}},
		"one ends while another one begins": {from("m1"), from("m2"), []string{"m1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Evicted(test.before, test.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExcluded(t *testing.T) {
	admits, refuses := named("m1"), named("m2")
	placedBy := func(affinity policyv1alpha1.ClusterAffinity) workv1alpha2.ResourceBindingSpec {
		return workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{ClusterAffinity: &affinity}}
	}
	groups := func(affinities ...policyv1alpha1.ClusterAffinity) workv1alpha2.ResourceBindingSpec {
		placement := &policyv1alpha1.Placement{}
		for _, affinity := range affinities {
			placement.ClusterAffinities = append(placement.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: affinity})
		}
		return workv1alpha2.ResourceBindingSpec{Placement: placement}
	}
	labelled := policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	both := *labelled.DeepCopy()
	both.ClusterNames = []string{"m2"}
	overflowing := func(first, overflow policyv1alpha1.ClusterAffinity) workv1alpha2.ResourceBindingSpec {
		spec := groups(first)
		spec.Placement.ClusterAffinities[0].OverflowAffinities = []policyv1alpha1.OverflowAffinityTerm{{ClusterAffinity: overflow}}
		return spec
	}
	taint := func(effect corev1.TaintEffect) []corev1.Taint {
		return []corev1.Taint{{Key: "k", Effect: effect, TimeAdded: &metav1.Time{Time: time.Unix(1, 0)}}}
	}
	tolerating := func(seconds *int64) workv1alpha2.ResourceBindingSpec {
		spec := placedBy(admits)
		spec.Placement.ClusterTolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: seconds}}
		return spec
	}
	tests := map[string]struct {
		taints []corev1.Taint
		spec   workv1alpha2.ResourceBindingSpec
		want   bool
	}{
		"a placement that selects the cluster":      {nil, placedBy(admits), false},
		"a placement that selects another":          {nil, placedBy(refuses), true},
		"one group of several selects it":           {nil, groups(refuses, admits), false},
		"labels that the cluster does not have":     {nil, placedBy(labelled), false},
		"a name, and labels that it does not have":  {nil, placedBy(both), true},
		"its name is left out":                      {nil, placedBy(policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"m1"}}), true},
		"an overflow group selects it":              {nil, overflowing(refuses, admits), false},
		"no group selects it":                       {nil, groups(refuses, refuses), true},
		"no placement":                              {nil, workv1alpha2.ResourceBindingSpec{}, false},
		"a taint that keeps new work out":           {taint(corev1.TaintEffectNoSchedule), placedBy(admits), false},
		"a taint that drives work out":              {taint(corev1.TaintEffectNoExecute), placedBy(admits), true},
		"a taint that is tolerated for a while":     {taint(corev1.TaintEffectNoExecute), tolerating(new(int64(300))), true},
		"a taint that is tolerated for good":        {taint(corev1.TaintEffectNoExecute), tolerating(nil), false},
		"a taint and no placement":                  {taint(corev1.TaintEffectNoExecute), workv1alpha2.ResourceBindingSpec{}, true},
		"an eviction from the cluster":              {nil, workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}}, true},
		"an eviction from another":                  {nil, workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2"}}}, false},
		"a placement that selects all the clusters": {nil, workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{Taints: test.taints}}
			if got := Excluded(cluster, &test.spec); got != test.want {
				t.Errorf("Excluded = %v", got)
			}
		})
	}
}

func TestUnmatched(t *testing.T) {
	labelled := policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	elsewhere := *labelled.DeepCopy()
	elsewhere.ClusterNames = []string{"m2"}
	gold := map[string]string{"tier": "gold"}
	tests := map[string]struct {
		labels    map[string]string
		placement *policyv1alpha1.Placement
		want      bool
	}{
		"a label that the cluster has":        {gold, &policyv1alpha1.Placement{ClusterAffinity: &labelled}, false},
		"a label that it does not have":       {nil, &policyv1alpha1.Placement{ClusterAffinity: &labelled}, true},
		"a name that leaves it out":           {nil, &policyv1alpha1.Placement{ClusterAffinity: &elsewhere}, false},
		"a placement that selects everything": {nil, &policyv1alpha1.Placement{}, false},
		"no placement":                        {nil, nil, false},
		"another group selects it": {nil, &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "gold", ClusterAffinity: labelled}, {AffinityName: "any"},
		}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", Labels: test.labels}}
			if got := Unmatched(cluster, &workv1alpha2.ResourceBindingSpec{Placement: test.placement}); got != test.want {
				t.Errorf("Unmatched = %t", got)
			}
		})
	}
}
