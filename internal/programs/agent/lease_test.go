package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestElectionLeaseIsOwnedByTheCluster(t *testing.T) {
	cluster := metav1.OwnerReference{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "east", UID: "now"}
	previous, other := cluster, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "east", UID: "node"}
	previous.UID = "before"
	tests := map[string]struct {
		existing []metav1.OwnerReference
		owner    *metav1.OwnerReference
		want     []metav1.OwnerReference
	}{
		"a new Lease":                     {owner: &cluster, want: []metav1.OwnerReference{cluster}},
		"the Lease has the owner already": {existing: []metav1.OwnerReference{cluster}, owner: &cluster, want: []metav1.OwnerReference{cluster}},
		"an earlier Cluster of the same name owns the Lease": {existing: []metav1.OwnerReference{previous}, owner: &cluster, want: []metav1.OwnerReference{cluster}},
		"another object owns the Lease, too":                 {existing: []metav1.OwnerReference{other}, owner: &cluster, want: []metav1.OwnerReference{other, cluster}},
		"the owner is not known yet":                         {existing: []metav1.OwnerReference{other}, want: []metav1.OwnerReference{other}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.existing}}
			before := lease.DeepCopy()
			if diff := cmp.Diff(test.want, withOwner(lease, test.owner).OwnerReferences); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, lease); diff != "" {
				t.Errorf("the original Lease was modified:\n%s", diff)
			}
		})
	}
}
