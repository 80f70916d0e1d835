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

// ownedLeases write Leases that go with a Cluster: agents cannot delete theirs, and
// nobody else knows of it.
type ownedLeases struct {
	coordinationv1client.LeasesGetter
	owner atomic.Pointer[metav1.OwnerReference]
}

// belongTo makes a Cluster the owner of what is written from now on.
func (l *ownedLeases) belongTo(cluster *clusterv1alpha1.Cluster) {
	l.owner.Store(&metav1.OwnerReference{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.ResourceKindCluster, Name: cluster.Name, UID: cluster.UID,
	})
}

// Leases implements coordinationv1client.LeasesGetter.
func (l *ownedLeases) Leases(namespace string) coordinationv1client.LeaseInterface {
	return &ownedLease{LeaseInterface: l.LeasesGetter.Leases(namespace), owner: l.owner.Load()}
}

type ownedLease struct {
	coordinationv1client.LeaseInterface
	owner *metav1.OwnerReference
}

// Create implements coordinationv1client.LeaseInterface.
func (l *ownedLease) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.LeaseInterface.Create(ctx, owned(lease, l.owner), options)
}

// Update implements coordinationv1client.LeaseInterface.
func (l *ownedLease) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.LeaseInterface.Update(ctx, owned(lease, l.owner), options)
}

// owned is the Lease as one of the owner, and no longer of an earlier Cluster of its
// name, with which it would go.
func owned(lease *coordinationv1.Lease, owner *metav1.OwnerReference) *coordinationv1.Lease {
	if owner == nil || slices.Contains(lease.OwnerReferences, *owner) {
		return lease
	}
	lease = lease.DeepCopy()
	lease.OwnerReferences = append(slices.DeleteFunc(lease.OwnerReferences, func(other metav1.OwnerReference) bool {
		return other.Kind == owner.Kind && other.Name == owner.Name
	}), *owner)
	return lease
}
