package fanout

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Scope is the clusters that a process serves: those of one sync mode.
type Scope struct {
	// Seen shows the Clusters that there are, from a cache.
	Seen client.Reader
	// Mode is their sync mode.
	Mode clusterv1alpha1.ClusterSyncMode
}

// Serves tells whether a cluster is there and served, by what the cache shows.
func (s Scope) Serves(name string) bool {
	cluster := &clusterv1alpha1.Cluster{}
	err := s.Seen.Get(context.Background(), types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	return err == nil && cluster.Spec.SyncMode == s.Mode
}

// Left tells that another process serves the cluster from now on.
func (s Scope) Left(older, newer *clusterv1alpha1.Cluster) bool {
	return older.Spec.SyncMode == s.Mode && newer.Spec.SyncMode != s.Mode
}

// Joined tells that another process served the cluster until now.
func (s Scope) Joined(older, newer *clusterv1alpha1.Cluster) bool {
	return older.Spec.SyncMode != s.Mode && newer.Spec.SyncMode == s.Mode
}
