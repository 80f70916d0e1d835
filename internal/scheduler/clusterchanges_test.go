package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestClusterChanges(t *testing.T) {
	with := func(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		cluster := member("a")
		change(cluster)
		return cluster
	}
	cases := map[string]struct {
		after              *clusterv1alpha1.Cluster
		concerns, capacity bool
	}{
		"nothing": {member("a"), false, false},
		"a heartbeat": {with(func(c *clusterv1alpha1.Cluster) {
			c.ResourceVersion = "99"
			c.Status.NodeSummary = &clusterv1alpha1.NodeSummary{TotalNum: 3}
		}), false, false},
		"another generation": {with(func(c *clusterv1alpha1.Cluster) { c.Generation = 2 }), true, true},
		"other labels":       {with(func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"a": "b"} }), true, false},
		"a deletion":         {with(func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &noon }), true, false},
		"another object":     {with(func(c *clusterv1alpha1.Cluster) { c.UID = "other" }), true, true},
		"fewer APIs":         {with(func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil }), true, false},
		"another kind of an API": {with(func(c *clusterv1alpha1.Cluster) {
			c.Status.APIEnablements[0].Resources[0].Kind = "StatefulSet"
		}), true, false},
		"more capacity": {with(func(c *clusterv1alpha1.Cluster) {
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1")}}
		}), false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := affectsPlacements(member("a"), tc.after); got != tc.concerns {
				t.Errorf("affects placements: %v, want %v", got, tc.concerns)
			}
			if got := mayHaveMoreCapacity(member("a"), tc.after); got != tc.capacity {
				t.Errorf("may have more capacity: %v, want %v", got, tc.capacity)
			}
		})
	}
}
