package fanout

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Scope are the clusters that a process serves: those with one sync mode.
type Scope struct {
	// Seen reads Clusters from a cache.
	Seen client.Reader
	// Mode is their sync mode.
	Mode clusterv1alpha1.ClusterSyncMode
}

// Serves reports whether a cluster exists and is served, according to the cache.
func (s Scope) Serves(name string) bool {
	cluster := &clusterv1alpha1.Cluster{}
	err := s.Seen.Get(context.Background(), types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	return err == nil && cluster.Spec.SyncMode == s.Mode
}

// Left reports whether another process serves the cluster after the change.
func (s Scope) Left(older, newer *clusterv1alpha1.Cluster) bool {
	return older.Spec.SyncMode == s.Mode && newer.Spec.SyncMode != s.Mode
}

// Joined reports whether another process served the cluster before the change.
func (s Scope) Joined(older, newer *clusterv1alpha1.Cluster) bool {
	return older.Spec.SyncMode != s.Mode && newer.Spec.SyncMode == s.Mode
}
