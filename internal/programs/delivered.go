package programs

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/domain/work"
)

// newDeliveredCounter returns a function that counts the manifests in the Works of a cluster. The
// function reads the Works from the cache. It returns 0 as long as Works cannot be listed.
func newDeliveredCounter(ctx context.Context, karmada client.Reader) func(cluster string) bounds.DeliveredSize {
	return func(cluster string) bounds.DeliveredSize {
		var delivered bounds.DeliveredSize
		works := &workv1alpha1.WorkList{}
		if err := karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
			return delivered
		}
		for i := range works.Items {
			for _, manifest := range works.Items[i].Spec.Workload.Manifests {
				delivered.Objects++
				delivered.Bytes += int64(len(manifest.Raw))
			}
		}
		return delivered
	}
}
