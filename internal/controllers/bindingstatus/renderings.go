package bindingstatus

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// Renderings returns for which clusters of a binding no Work could be rendered from the
// current template, and why.
type Renderings interface {
	// Get returns the causes by cluster.
	Get(binding types.UID) map[string]string
	// RenderedGeneration returns the newest generation of a binding whose Works are rendered, or failed
	// to render; 0 for none.
	RenderedGeneration(bindingKey types.NamespacedName, uid types.UID) int64
	// Subscribe registers a function that is called with each binding whose result changes.
	Subscribe(notify func(binding types.UID))
}

// isRendered reports whether the Works of a binding, and the causes of missing Works, belong
// to its current generation.
func (r *reconciler) isRendered(bound binding.Object) bool {
	return r.renderings.RenderedGeneration(client.ObjectKeyFromObject(bound), bound.GetUID()) >= bound.GetGeneration()
}

// onRendering queues the bindings whose render errors changed.
func (r *reconciler) onRendering(window time.Duration) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		r.renderings.Subscribe(func(binding types.UID) {
			if ctx.Err() != nil {
				return
			}
			request, ok, err := r.requestForUID(ctx, binding)
			if err != nil {
				klog.FromContext(ctx).Error(err, "A render error is missing in the status of a binding", "binding", binding)
			}
			if ok {
				q.AddAfter(request, window)
			}
		})
		return nil
	})
}

// uidIndex is the index of bindings by UID.
const uidIndex = Name + "/uid"

func indexBindings(indexer client.FieldIndexer) error {
	for _, object := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		err := indexer.IndexField(context.Background(), object, uidIndex,
			func(object client.Object) []string { return []string{string(object.GetUID())} })
		if err != nil {
			return fmt.Errorf("indexing bindings by UID: %w", err)
		}
	}
	return nil
}

// requestForUID returns the request for the binding with a UID; ok is false when it does not
// exist.
func (r *reconciler) requestForUID(ctx context.Context, uid types.UID) (request reconcile.Request, ok bool, err error) {
	namespaced, clusterWide := &workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}
	for _, list := range []client.ObjectList{namespaced, clusterWide} {
		if err := r.karmada.List(ctx, list, client.MatchingFields{uidIndex: string(uid)}, client.UnsafeDisableDeepCopy); err != nil {
			return request, false, fmt.Errorf("finding the binding: %w", err)
		}
	}
	switch {
	case len(namespaced.Items) > 0:
		return requestFor(&namespaced.Items[0]), true, nil
	case len(clusterWide.Items) > 0:
		return requestFor(&clusterWide.Items[0]), true, nil
	default:
		return request, false, nil
	}
}
