package binding

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

type queue = loop.Queue[reconcile.Request]

// onlyRelevantUpdates returns a predicate that drops updates of a binding that do not affect its
// Works.
func onlyRelevantUpdates() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		older, ok := e.ObjectOld.(binding.Object)
		newer, ok2 := e.ObjectNew.(binding.Object)
		return ok && ok2 && isRelevantUpdate(older, newer)
	}}
}

func isRelevantUpdate(older, newer binding.Object) bool {
	return older.GetGeneration() != newer.GetGeneration() ||
		(older.GetDeletionTimestamp() == nil) != (newer.GetDeletionTimestamp() == nil) ||
		binding.PermanentID(older) != binding.PermanentID(newer) || binding.HaveSuspendedDependentsChanged(older, newer)
}

// newWorkHandler returns a handler that queues a binding when one of its Works is deleted. It also
// queues a binding when a Work appears in a cluster that does not need it, because the binding may
// have been changed or deleted while the Work was written. At the start of the process every Work
// queues its binding, because the binding may have been deleted in the meantime. A deleted Work
// that the binding still needs is created again, after a delay if its cluster is in pull mode.
func (r *reconciler) newWorkHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			changedWork, ok := e.Object.(*workv1alpha1.Work)
			key, ok2 := binding.ReferencedBinding(e.Object, r.namespaced)
			switch {
			case !ok || !ok2:
			case e.IsInInitialList:
				loop.EnqueueLowPriority(q, 0, reconcile.Request{NamespacedName: key})
			case !r.expectsWork(ctx, key, changedWork):
				q.Add(reconcile.Request{NamespacedName: key})
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			changedWork, ok := e.Object.(*workv1alpha1.Work)
			key, ok2 := binding.ReferencedBinding(e.Object, r.namespaced)
			if !ok || !ok2 {
				return
			}
			r.writes.ForgetDeleted(key, changedWork)
			delay := time.Duration(0)
			if r.expectsWork(ctx, key, changedWork) {
				delay = loop.RecreationDelay(ctx, r.karmada, changedWork)
			}
			q.AddAfter(reconcile.Request{NamespacedName: key}, delay)
		},
	}
}

func (r *reconciler) expectsWork(ctx context.Context, key types.NamespacedName, candidate *workv1alpha1.Work) bool {
	bound := binding.New(r.namespaced)
	if err := r.karmada.Get(ctx, key, bound, client.UnsafeDisableDeepCopy); err != nil || bound.GetDeletionTimestamp() != nil {
		return false
	}
	cluster, ok := work.ClusterOf(candidate.Namespace)
	return ok && binding.ExpectedClusters(bound.BindingSpec()).Has(cluster)
}

// newClusterHandler returns a handler that queues the bindings that target a cluster when the
// cluster is registered, and when a change of the cluster may change the override policies that
// select it.
func (r *reconciler) newClusterHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				loop.EnqueueLowPriority(q, 0, r.requestsForCluster(ctx, e.Object.GetName())...)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if ok && ok2 && hasChangedAttributes(older, newer) && r.hasAttributeSelectors(ctx) {
				loop.EnqueueLowPriority(q, 0, r.requestsForCluster(ctx, newer.Name)...)
			}
		},
	}
}

// hasChangedAttributes reports whether the cluster selectors of override policies may give a
// different result for the cluster.
func hasChangedAttributes(older, newer *clusterv1alpha1.Cluster) bool {
	return !maps.Equal(older.Labels, newer.Labels) || older.Spec.Provider != newer.Spec.Provider ||
		older.Spec.Region != newer.Spec.Region || !slices.Equal(older.Spec.Zones, newer.Spec.Zones)
}

func (r *reconciler) hasAttributeSelectors(ctx context.Context) bool {
	for _, list := range []client.ObjectList{&policyv1alpha1.ClusterOverridePolicyList{}, &policyv1alpha1.OverridePolicyList{}} {
		err := r.karmada.List(ctx, list, overridesByAttributes.Matching(byAttributes), client.UnsafeDisableDeepCopy, client.Limit(1))
		if err != nil || meta.LenList(list) > 0 {
			return true
		}
	}
	return false
}

func (r *reconciler) requestsForCluster(ctx context.Context, cluster string) []reconcile.Request {
	var requests []reconcile.Request
	for _, bound := range r.findBindings(ctx, loop.BindingsByTarget.Matching(cluster)) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)})
	}
	return requests
}

// findBindings returns the bindings that match the list options.
func (r *reconciler) findBindings(ctx context.Context, filters ...client.ListOption) []binding.Object {
	found, err := loop.ListBindings(ctx, r.karmada, r.namespaced, filters...)
	if err != nil {
		// The error is only logged, because a cache returns an error only when the process ends or
		// an index is missing.
		log.FromContext(ctx).Error(err, "Bindings are not queued")
	}
	return found
}

// newOverrideHandler returns a handler that queues the bindings whose template is selected by an
// override policy, or was selected before the policy changed. It ignores the initial list, because
// every binding is queued at the start anyway.
func (r *reconciler) newOverrideHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				loop.EnqueueLowPriority(q, 0, r.requestsForPolicies(ctx, e.Object)...)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				loop.EnqueueLowPriority(q, 0, r.requestsForPolicies(ctx, e.ObjectOld, e.ObjectNew)...)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			loop.EnqueueLowPriority(q, 0, r.requestsForPolicies(ctx, e.Object)...)
		},
	}
}

// requestsForPolicies returns the requests for the bindings that any of the override policies may
// affect. It reads only caches and waits for nothing, because event handlers call it.
func (r *reconciler) requestsForPolicies(ctx context.Context, policies ...client.Object) []reconcile.Request {
	found := map[types.NamespacedName]struct{}{}
	readTemplate := func(ref workv1alpha2.ObjectReference) *unstructured.Unstructured {
		return r.templateReader.GetListed(kindOf(ref), keyOf(ref))
	}
	for _, object := range policies {
		policy, ok := object.(override.Object)
		if !ok {
			continue
		}
		for _, s := range searchesOf(policy) {
			for _, bound := range r.findBindings(ctx, s.listOptions()...) {
				key := client.ObjectKeyFromObject(bound)
				if _, known := found[key]; !known && s.selects(bound.BindingSpec().Resource, readTemplate) {
					found[key] = struct{}{}
				}
			}
		}
	}
	requests := make([]reconcile.Request, 0, len(found))
	for key := range found {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}
