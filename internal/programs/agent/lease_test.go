package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheLeaseOfTheElectionGoesWithTheCluster(t *testing.T) {
	cluster := metav1.OwnerReference{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "east", UID: "now"}
	earlier, other := cluster, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "east", UID: "node"}
	earlier.UID = "before"
	tests := map[string]struct {
		held  []metav1.OwnerReference
		owner *metav1.OwnerReference
		want  []metav1.OwnerReference
	}{
		"a new one":                               {owner: &cluster, want: []metav1.OwnerReference{cluster}},
		"one that is its own already":             {held: []metav1.OwnerReference{cluster}, owner: &cluster, want: []metav1.OwnerReference{cluster}},
		"one that an earlier Cluster has left":    {held: []metav1.OwnerReference{earlier}, owner: &cluster, want: []metav1.OwnerReference{cluster}},
		"one that belongs to something else, too": {held: []metav1.OwnerReference{other}, owner: &cluster, want: []metav1.OwnerReference{other, cluster}},
		"before there is a Cluster":               {held: []metav1.OwnerReference{other}, want: []metav1.OwnerReference{other}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.held}}
			before := lease.DeepCopy()
			if diff := cmp.Diff(test.want, owned(lease, test.owner).OwnerReferences); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, lease); diff != "" {
				t.Errorf("the Lease that was given has changed:\n%s", diff)
			}
		})
	}
}
