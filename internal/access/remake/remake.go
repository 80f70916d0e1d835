// Package remake answers "when is a Work that was deleted made again?".
//
// In push mode at once. In pull mode after a pause: command lines that unregister a
// cluster delete all of its Works first and delete the Cluster when they have seen that
// none is left. A Work that is made again at once keeps them waiting for ever. The
// objects of the Work stay in the member meanwhile.
package remake

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

// Pause is how long a Work of a cluster in pull mode stays away.
const Pause = 5 * time.Second

// Delay returns how long to wait before the Work that was deleted is made again. A
// cluster that cannot be read delays nothing.
func Delay(ctx context.Context, from client.Reader, deleted client.Object) time.Duration {
	name, ok := work.ClusterOf(deleted.GetNamespace())
	if !ok {
		return 0
	}
	cluster := &clusterv1alpha1.Cluster{}
	err := from.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	if err != nil || cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		return 0
	}
	return Pause
}
