package namespace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

type (
	queue    = loop.Queue[request]
	handlers = handler.TypedFuncs[client.Object, request]
)

// isPropagated reports whether the Namespace is propagated to clusters. It returns false for the
// Namespace default, because every cluster already has it.
func isPropagated(namespace *unstructured.Unstructured, skipped tenancy.SkippedNamespaces) bool {
	name := namespace.GetName()
	return name != "default" && !skipped.Skips(gvk, "", name) && namespace.GetDeletionTimestamp() == nil &&
		!tenancy.IsExcludedFromPropagation(namespace)
}

func workName(namespace string) string { return work.Name(gvk.Kind, "", namespace) }

// namespaceOf returns the Namespace whose Work has the given name. A Work's name consists of its
// object's name and a hash, which also depends on the object's kind. namespaceOf returns false if no
// Namespace's Work has this name.
func namespaceOf(name string) (string, bool) {
	end := strings.LastIndexByte(name, '-')
	if end < 0 {
		return "", false
	}
	return name[:end], workName(name[:end]) == name
}

// newNamespaceHandlers returns handlers that queue a Namespace for all clusters. For an execution
// namespace, they instead queue all Namespaces for that execution namespace's cluster.
func (r *reconciler) newNamespaceHandlers() handlers {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		if cluster, ok := work.ClusterOf(object.GetName()); ok {
			loop.EnqueueLowPriority(q, 0, requestsFor(r.propagatedNames(ctx, everyNamespace), []string{cluster})...)
			return
		}
		for _, pair := range requestsFor([]string{object.GetName()}, r.clusterNames(ctx)) {
			q.Add(pair)
		}
	}
	return handlers{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if _, ok := work.ClusterOf(e.Object.GetName()); !ok || !e.IsInInitialList {
				enqueue(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if hasPropagatedChange(e.ObjectOld, e.ObjectNew) {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
	}
}

// hasPropagatedChange reports whether a propagated field of the Namespace changed.
func hasPropagatedChange(older, newer client.Object) bool {
	before, ok := older.(*unstructured.Unstructured)
	after, ok2 := newer.(*unstructured.Unstructured)
	return ok && ok2 && work.PrunedHash(before) != work.PrunedHash(after)
}

// newClusterHandlers returns handlers that queue all Namespaces for a cluster that was registered, or
// whose labels, provider, region or zones changed, because override policies select clusters by these
// fields. They ignore the initial list, because the Namespaces' events queue all clusters at the start.
func (r *reconciler) newClusterHandlers() handlers {
	return handlers{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				loop.EnqueueLowPriority(q, 0, requestsFor(r.propagatedNames(ctx, everyNamespace), []string{e.Object.GetName()})...)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if ok && ok2 && hasSelectorChange(older, newer) {
				loop.EnqueueLowPriority(q, 0, requestsFor(r.propagatedNames(ctx, everyNamespace), []string{newer.Name})...)
			}
		},
	}
}

// hasSelectorChange reports whether a field by which override policies select clusters changed.
func hasSelectorChange(older, newer *clusterv1alpha1.Cluster) bool {
	return !maps.Equal(older.Labels, newer.Labels) || older.Spec.Provider != newer.Spec.Provider ||
		older.Spec.Region != newer.Spec.Region || !slices.Equal(older.Spec.Zones, newer.Spec.Zones)
}

// newOverrideHandlers returns handlers that queue the Namespaces that an override policy selects, or
// selected before the policy changed.
func (r *reconciler) newOverrideHandlers() handlers {
	enqueue := func(ctx context.Context, q queue, policies ...client.Object) {
		selected := func(namespace *unstructured.Unstructured) bool { return isSelectedBy(namespace, policies...) }
		loop.EnqueueLowPriority(q, 0, requestsFor(r.propagatedNames(ctx, selected), r.clusterNames(ctx))...)
	}
	return handlers{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				enqueue(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				enqueue(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object) },
	}
}

// isSelectedBy reports whether any of the override policies selects the Namespace.
func isSelectedBy(namespace *unstructured.Unstructured, policies ...client.Object) bool {
	return slices.ContainsFunc(policies, func(object client.Object) bool {
		candidate, ok := object.(override.Object)
		return ok && override.Specificity(candidate, namespace) != policy.MatchNone
	})
}

// newWorkHandlers returns handlers that queue a Namespace when its Work is deleted, or when a binding
// no longer manages the Work. In pull mode, a deleted Work is created again only after a delay.
func (r *reconciler) newWorkHandlers() handlers {
	enqueue := func(object client.Object, q queue, delay time.Duration) {
		namespace, ok := namespaceOf(object.GetName())
		cluster, ok2 := work.ClusterOf(object.GetNamespace())
		if ok && ok2 {
			q.AddAfter(request{namespace: namespace, cluster: cluster}, delay)
		}
	}
	return handlers{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*workv1alpha1.Work)
			newer, ok2 := e.ObjectNew.(*workv1alpha1.Work)
			if ok && ok2 && work.HasBinding(older) && !work.HasBinding(newer) {
				enqueue(newer, q, 0)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			enqueue(e.Object, q, loop.RecreationDelay(ctx, r.karmada, e.Object))
		},
	}
}

func everyNamespace(*unstructured.Unstructured) bool { return true }

// propagatedNames returns the names of the Namespaces that are propagated and for which selected
// returns true.
func (r *reconciler) propagatedNames(ctx context.Context, selected func(*unstructured.Unstructured) bool) []string {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	r.listFromCache(ctx, list)
	var names []string
	for i := range list.Items {
		if namespace := &list.Items[i]; isPropagated(namespace, r.options.SkippedNamespaces) && selected(namespace) {
			names = append(names, namespace.GetName())
		}
	}
	return names
}

func (r *reconciler) clusterNames(ctx context.Context) []string {
	list := &clusterv1alpha1.ClusterList{}
	r.listFromCache(ctx, list)
	names := make([]string, 0, len(list.Items))
	for _, cluster := range list.Items {
		names = append(names, cluster.Name)
	}
	return names
}

func (r *reconciler) listFromCache(ctx context.Context, into client.ObjectList) {
	if err := r.karmada.List(ctx, into, client.UnsafeDisableDeepCopy); err != nil {
		// Only log the error, because a read from a cache fails only when the process ends.
		log.FromContext(ctx).Error(fmt.Errorf("listing %T: %w", into, err), "cannot enqueue namespaces")
	}
}

// requestsFor returns a request for each Namespace in each cluster.
func requestsFor(namespaces, clusters []string) []request {
	requests := make([]request, 0, len(namespaces)*len(clusters))
	for _, namespace := range namespaces {
		for _, cluster := range clusters {
			requests = append(requests, request{namespace: namespace, cluster: cluster})
		}
	}
	return requests
}
