package clusteraffinity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// newCluster returns a cluster after the given functions changed it.
func newCluster(name string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, apply := range change {
		apply(cluster)
	}
	return cluster
}

func inRegion(name string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Region = name }
}

func inZones(names ...string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = names }
}

func ofProvider(name string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Provider = name }
}

func labelled(labels map[string]string) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Labels = labels }
}

func clustersNamed(names ...string) *policyv1alpha1.ClusterAffinity {
	return &policyv1alpha1.ClusterAffinity{ClusterNames: names}
}

func fieldAffinity(key string, operator corev1.NodeSelectorOperator, values ...string) *policyv1alpha1.ClusterAffinity {
	return &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	}}
}

func TestMatches(t *testing.T) {
	here := newCluster("m1", ofProvider("p1"), inRegion("r1"), inZones("z1", "z2"), labelled(map[string]string{"env": "prod"}))
	bare := newCluster("m2")
	numbered := newCluster("m3", inRegion("7"))
	tests := map[string]struct {
		cluster  *clusterv1alpha1.Cluster
		affinity *policyv1alpha1.ClusterAffinity
		want     bool
	}{
		"no affinity selects every cluster":             {here, nil, true},
		"an empty affinity selects every cluster":       {here, &policyv1alpha1.ClusterAffinity{}, true},
		"a named cluster":                               {here, clustersNamed("m1"), true},
		"a cluster that is not named":                   {here, clustersNamed("m2"), false},
		"an excluded cluster that is also named":        {here, &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}, ExcludeClusters: []string{"m1"}}, false},
		"a cluster with the label":                      {here, &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}, true},
		"a cluster without the label":                   {bare, &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}, false},
		"an empty label selector selects":               {here, &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{}}, true},
		"a selector that cannot be parsed selects none": {here, &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Like"}}}}, false},
		"an empty field selector selects":               {here, &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{}}, true},

		"zone In with one zone in common": {here, fieldAffinity("zone", corev1.NodeSelectorOpIn, "z2", "z9"), true},
		"zone In with no zone in common":  {here, fieldAffinity("zone", corev1.NodeSelectorOpIn, "z9"), false},
		"zone In, no zones":               {bare, fieldAffinity("zone", corev1.NodeSelectorOpIn, "z1"), false},
		"zone NotIn with one in common":   {here, fieldAffinity("zone", corev1.NodeSelectorOpNotIn, "z2", "z9"), false},
		"zone NotIn with none in common":  {here, fieldAffinity("zone", corev1.NodeSelectorOpNotIn, "z9"), true},
		"zone NotIn, no zones":            {bare, fieldAffinity("zone", corev1.NodeSelectorOpNotIn, "z1"), true},
		"zone Exists":                     {here, fieldAffinity("zone", corev1.NodeSelectorOpExists), true},
		"zone Exists, no zones":           {bare, fieldAffinity("zone", corev1.NodeSelectorOpExists), false},
		"zone DoesNotExist":               {here, fieldAffinity("zone", corev1.NodeSelectorOpDoesNotExist), false},
		"zone DoesNotExist, no zones":     {bare, fieldAffinity("zone", corev1.NodeSelectorOpDoesNotExist), true},
		"zone with another operator":      {here, fieldAffinity("zone", corev1.NodeSelectorOpGt, "1"), false},
		"provider In":                     {here, fieldAffinity("provider", corev1.NodeSelectorOpIn, "p1"), true},
		"provider In with another":        {here, fieldAffinity("provider", corev1.NodeSelectorOpIn, "p2"), false},
		"provider In, no provider":        {bare, fieldAffinity("provider", corev1.NodeSelectorOpIn, "p1"), false},
		"provider In of an empty value":   {bare, fieldAffinity("provider", corev1.NodeSelectorOpIn, ""), false},
		"provider NotIn, no provider":     {bare, fieldAffinity("provider", corev1.NodeSelectorOpNotIn, "p1"), true},
		"region NotIn":                    {here, fieldAffinity("region", corev1.NodeSelectorOpNotIn, "r1"), false},
		"region Exists":                   {here, fieldAffinity("region", corev1.NodeSelectorOpExists), true},
		"region Exists, no region":        {bare, fieldAffinity("region", corev1.NodeSelectorOpExists), false},
		"region DoesNotExist":             {bare, fieldAffinity("region", corev1.NodeSelectorOpDoesNotExist), true},
		"region greater":                  {numbered, fieldAffinity("region", corev1.NodeSelectorOpGt, "6"), true},
		"region not less":                 {numbered, fieldAffinity("region", corev1.NodeSelectorOpLt, "7"), false},
		"region with an unknown operator": {here, fieldAffinity("region", "Like", "r1"), false},
		"region In of no values":          {here, fieldAffinity("region", corev1.NodeSelectorOpIn), false},
		"an unknown field":                {here, fieldAffinity("colour", corev1.NodeSelectorOpExists), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Matches(test.cluster, test.affinity); got != test.want {
				t.Errorf("Matches = %v, want %v", got, test.want)
			}
		})
	}
}

func TestEveryExpressionMustMatch(t *testing.T) {
	affinity := fieldAffinity("zone", corev1.NodeSelectorOpIn, "z1")
	affinity.FieldSelector.MatchExpressions = append(affinity.FieldSelector.MatchExpressions,
		corev1.NodeSelectorRequirement{Key: "provider", Operator: corev1.NodeSelectorOpIn, Values: []string{"p1"}})
	if !Matches(newCluster("m1", ofProvider("p1"), inZones("z1")), affinity) {
		t.Error("a cluster that satisfies both expressions is not selected")
	}
	if Matches(newCluster("m1", ofProvider("p2"), inZones("z1")), affinity) {
		t.Error("a cluster that satisfies one expression of two is selected")
	}
}
