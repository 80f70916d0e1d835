package guard

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func clustersNamed(clusters ...string) policyv1alpha1.ClusterAffinity {
	return policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
}

func TestIsExcluded(t *testing.T) {
	selecting, excluding := clustersNamed("m1"), clustersNamed("m2")
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
		spec := placedBy(selecting)
		spec.Placement.ClusterTolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: seconds}}
		return spec
	}
	tests := map[string]struct {
		taints []corev1.Taint
		spec   workv1alpha2.ResourceBindingSpec
		want   bool
	}{
		"a placement that selects the cluster":           {nil, placedBy(selecting), false},
		"a placement that selects another":               {nil, placedBy(excluding), true},
		"one group of several selects it":                {nil, groups(excluding, selecting), false},
		"labels that the cluster does not have":          {nil, placedBy(labelled), false},
		"another name and missing labels":                {nil, placedBy(both), true},
		"an excluded name":                               {nil, placedBy(policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"m1"}}), true},
		"an overflow group selects it":                   {nil, overflowing(excluding, selecting), false},
		"no group selects it":                            {nil, groups(excluding, excluding), true},
		"no placement":                                   {nil, workv1alpha2.ResourceBindingSpec{}, false},
		"a NoSchedule taint":                             {taint(corev1.TaintEffectNoSchedule), placedBy(selecting), false},
		"a NoExecute taint":                              {taint(corev1.TaintEffectNoExecute), placedBy(selecting), true},
		"a NoExecute taint that is tolerated for a time": {taint(corev1.TaintEffectNoExecute), tolerating(new(int64(300))), false},
		"a NoExecute taint that was tolerated":           {taint(corev1.TaintEffectNoExecute), tolerating(new(int64(30))), true},
		"a NoExecute taint that is tolerated for ever":   {taint(corev1.TaintEffectNoExecute), tolerating(nil), false},
		"a taint and no placement":                       {taint(corev1.TaintEffectNoExecute), workv1alpha2.ResourceBindingSpec{}, true},
		"an eviction from the cluster":                   {nil, workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}}, true},
		"an eviction from another":                       {nil, workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2"}}}, false},
		"a placement that selects all the clusters":      {nil, workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{Taints: test.taints}}
			if got := IsExcluded(cluster, &test.spec, time.Unix(100, 0)); got != test.want {
				t.Errorf("Excluded = %v", got)
			}
		})
	}
}

func TestIsUnmatched(t *testing.T) {
	labelled := policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	elsewhere := *labelled.DeepCopy()
	elsewhere.ClusterNames = []string{"m2"}
	golden := clusterv1alpha1.ClusterSpec{Provider: "p", Region: "r", Zones: []string{"z"}}
	term := func(name string, affinity policyv1alpha1.ClusterAffinity, overflows ...policyv1alpha1.ClusterAffinity) policyv1alpha1.ClusterAffinityTerm {
		group := policyv1alpha1.ClusterAffinityTerm{AffinityName: name, ClusterAffinity: affinity}
		for _, overflow := range overflows {
			group.OverflowAffinities = append(group.OverflowAffinities, policyv1alpha1.OverflowAffinityTerm{ClusterAffinity: overflow})
		}
		return group
	}
	groups := func(terms ...policyv1alpha1.ClusterAffinityTerm) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{ClusterAffinities: terms}
	}
	goldOrAny := groups(term("gold", labelled), term("any", policyv1alpha1.ClusterAffinity{}))
	spread := func(by policyv1alpha1.SpreadFieldValue) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: by, MaxGroups: 1, MinGroups: 1}}}
	}
	provider, region, zone, cluster := policyv1alpha1.SpreadByFieldProvider, policyv1alpha1.SpreadByFieldRegion, policyv1alpha1.SpreadByFieldZone, policyv1alpha1.SpreadByFieldCluster
	tests := map[string]struct {
		gold      bool // whether the cluster has the label, and a provider, a region and zones
		placement *policyv1alpha1.Placement
		group     string // the affinity group in use
		replicas  int32
		want      bool
	}{
		"a label that the cluster has":        {gold: true, placement: &policyv1alpha1.Placement{ClusterAffinity: &labelled}, want: false},
		"a label that it does not have":       {placement: &policyv1alpha1.Placement{ClusterAffinity: &labelled}, want: true},
		"another name":                        {placement: &policyv1alpha1.Placement{ClusterAffinity: &elsewhere}, want: false},
		"a placement that selects everything": {placement: &policyv1alpha1.Placement{}, want: false},
		"no placement":                        {want: false},

		"the group in use selects it":                               {gold: true, placement: goldOrAny, group: "gold", want: false},
		"the group in use does not select it, and the next does":    {placement: goldOrAny, group: "gold", want: true},
		"an earlier group does not select it, and that in use does": {placement: goldOrAny, group: "any", want: false},
		"an earlier group does not select it, and that in use names others": {
			placement: groups(term("gold", labelled), term("m2", clustersNamed("m2"))), group: "m2", want: true},
		"the group in use names others, and the next names it": {placement: groups(term("m2", clustersNamed("m2")), term("m1", clustersNamed("m1"))), group: "m2", want: false},
		"the group in use is not known":                        {placement: goldOrAny, group: "", want: true},
		"the group in use is not known, and all select it":     {gold: true, placement: goldOrAny, group: "", want: false},
		"an overflow group selects it":                         {placement: groups(term("gold", labelled, clustersNamed("m1"))), group: "gold", replicas: 1, want: false},
		"an overflow group selects it, for replicas only":      {placement: groups(term("gold", labelled, clustersNamed("m1"))), group: "gold", want: true},

		"spread by a provider that it has":           {gold: true, placement: spread(provider), want: false},
		"spread by a provider that it does not have": {placement: spread(provider), want: true},
		"spread by a region that it has":             {gold: true, placement: spread(region), want: false},
		"spread by a region that it does not have":   {placement: spread(region), want: true},
		"spread by zones that it has":                {gold: true, placement: spread(zone), want: false},
		"spread by zones that it does not have":      {placement: spread(zone), want: true},
		"spread by cluster":                          {placement: spread(cluster), want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
			if test.gold {
				cluster.Labels, cluster.Spec = map[string]string{"tier": "gold"}, golden
			}
			spec := &workv1alpha2.ResourceBindingSpec{Placement: test.placement, Replicas: test.replicas}
			if got := IsUnmatched(cluster, spec, &workv1alpha2.ResourceBindingStatus{SchedulerObservedAffinityName: test.group}); got != test.want {
				t.Errorf("Unmatched = %t", got)
			}
		})
	}
}
