package loop

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// SyncModeScope describes the clusters that a process serves: all clusters with one sync mode.
type SyncModeScope struct {
	// Clusters reads Cluster objects from a cache.
	Clusters client.Reader
	// Mode is the sync mode of the served clusters.
	Mode clusterv1alpha1.ClusterSyncMode
}

// IsServed reports whether the cache contains the cluster with the sync mode of this scope.
func (s SyncModeScope) IsServed(ctx context.Context, name string) bool {
	cluster := &clusterv1alpha1.Cluster{}
	err := s.Clusters.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	return err == nil && cluster.Spec.SyncMode == s.Mode
}

// HasLeft reports whether a change moves a cluster out of the scope, so that another process serves
// the cluster from now on.
func (s SyncModeScope) HasLeft(older, newer *clusterv1alpha1.Cluster) bool {
	return older.Spec.SyncMode == s.Mode && newer.Spec.SyncMode != s.Mode
}

// HasJoined reports whether a change moves a cluster into the scope, so that another process served
// the cluster until now.
func (s SyncModeScope) HasJoined(older, newer *clusterv1alpha1.Cluster) bool {
	return older.Spec.SyncMode != s.Mode && newer.Spec.SyncMode == s.Mode
}
