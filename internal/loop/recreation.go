package loop

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

// PullModeRecreationDelay is the delay for a Work of a cluster in pull mode.
const PullModeRecreationDelay = 5 * time.Second

// RecreationDelay returns how long to wait before a deleted Work is created again. It returns 0 if the
// cluster cannot be read.
//
// In push mode a deleted Work is created again at once. In pull mode it is created again after a
// delay, because the commands that unregister a cluster first delete all Works of the cluster, and
// delete the Cluster when no Work is left. These commands would never finish if Works were created
// again at once. During the delay the member objects of the Work remain.
func RecreationDelay(ctx context.Context, from client.Reader, deleted client.Object) time.Duration {
	name, ok := work.ClusterOf(deleted.GetNamespace())
	if !ok {
		return 0
	}
	cluster := &clusterv1alpha1.Cluster{}
	err := from.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	if err != nil || cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		return 0
	}
	return PullModeRecreationDelay
}
