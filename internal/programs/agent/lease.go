package agent

import (
	"context"
	"slices"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// ownedLeases writes Leases that are owned by a Cluster. Agents are not allowed to delete their
// Leases, so the garbage collector deletes the Leases together with the Cluster.
type ownedLeases struct {
	coordinationv1client.LeasesGetter
	owner atomic.Pointer[metav1.OwnerReference]
}

// setOwner sets the owner of all Leases that are written from now on.
func (o *ownedLeases) setOwner(cluster *clusterv1alpha1.Cluster) {
	o.owner.Store(&metav1.OwnerReference{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.ResourceKindCluster, Name: cluster.Name, UID: cluster.UID,
	})
}

// Leases implements coordinationv1client.LeasesGetter.
func (o *ownedLeases) Leases(namespace string) coordinationv1client.LeaseInterface {
	return &ownedLease{LeaseInterface: o.LeasesGetter.Leases(namespace), owner: o.owner.Load()}
}

type ownedLease struct {
	coordinationv1client.LeaseInterface
	owner *metav1.OwnerReference
}

// Create implements coordinationv1client.LeaseInterface.
func (o *ownedLease) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return o.LeaseInterface.Create(ctx, withOwner(lease, o.owner), options)
}

// Update implements coordinationv1client.LeaseInterface.
func (o *ownedLease) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return o.LeaseInterface.Update(ctx, withOwner(lease, o.owner), options)
}

// withOwner returns the Lease with the owner. It removes owner references to an earlier Cluster of
// the same name, because garbage collection would delete the Lease for a deleted owner.
func withOwner(lease *coordinationv1.Lease, owner *metav1.OwnerReference) *coordinationv1.Lease {
	if owner == nil || slices.Contains(lease.OwnerReferences, *owner) {
		return lease
	}
	lease = lease.DeepCopy()
	lease.OwnerReferences = append(slices.DeleteFunc(lease.OwnerReferences, func(other metav1.OwnerReference) bool {
		return other.Kind == owner.Kind && other.Name == owner.Name
	}), *owner)
	return lease
}
