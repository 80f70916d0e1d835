package binding

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/recreation"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/work"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueLowPriority queues bindings because another object changed. Bindings that users
// change are handled first.
func enqueueLowPriority(q queue, requests []reconcile.Request) {
	if ranked, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		ranked.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, requests...)
		return
	}
	for _, request := range requests {
		q.Add(request)
	}
}

// onlyRelevantUpdates leaves out updates of a binding that do not affect its Works.
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
		binding.PermanentID(older) != binding.PermanentID(newer)
}

// onWork queues a binding when one of its Works is deleted, or appears in a cluster that does
// not need it: the binding may have changed during the write, or be deleted itself. At the
// start, every Work queues its binding, in case the binding does not exist. A Work that the
// binding still needs is created again after a delay if its cluster is in pull mode.
func (r *reconciler) onWork() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			changedWork, ok := e.Object.(*workv1alpha1.Work)
			key, ok2 := binding.ReferencedBinding(e.Object, r.namespaced)
			switch {
			case !ok || !ok2:
			case e.IsInInitialList:
				enqueueLowPriority(q, []reconcile.Request{{NamespacedName: key}})
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
			r.writes.recordDelete(key, changedWork)
			delay := time.Duration(0)
			if r.expectsWork(ctx, key, changedWork) {
				delay = recreation.Delay(ctx, r.karmada, changedWork)
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

// onCluster queues the bindings that target a cluster when the cluster is registered, and when
// override policies may select it differently.
func (r *reconciler) onCluster() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				enqueueLowPriority(q, r.requestsForCluster(ctx, e.Object.GetName()))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if ok && ok2 && hasChangedAttributes(older, newer) && r.hasAttributeSelectors(ctx) {
				enqueueLowPriority(q, r.requestsForCluster(ctx, newer.Name))
			}
		},
	}
}

// hasChangedAttributes reports whether cluster selectors may evaluate the cluster differently.
func hasChangedAttributes(older, newer *clusterv1alpha1.Cluster) bool {
	return !maps.Equal(older.Labels, newer.Labels) || older.Spec.Provider != newer.Spec.Provider ||
		older.Spec.Region != newer.Spec.Region || !slices.Equal(older.Spec.Zones, newer.Spec.Zones)
}

func (r *reconciler) hasAttributeSelectors(ctx context.Context) bool {
	for _, list := range []client.ObjectList{&policyv1alpha1.ClusterOverridePolicyList{}, &policyv1alpha1.OverridePolicyList{}} {
		err := r.karmada.List(ctx, list, client.MatchingFields{attributesField: byAttributes}, client.UnsafeDisableDeepCopy, client.Limit(1))
		if err != nil || meta.LenList(list) > 0 {
			return true
		}
	}
	return false
}

func (r *reconciler) requestsForCluster(ctx context.Context, cluster string) []reconcile.Request {
	var requests []reconcile.Request
	r.forEachBinding(ctx, client.MatchingFields{targetField: cluster}, func(bound binding.Object) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)})
	})
	return requests
}

// forEachBinding calls a function for each binding that matches a filter, without copying the
// binding.
func (r *reconciler) forEachBinding(ctx context.Context, filter client.ListOption, visit func(binding.Object)) {
	var list client.ObjectList = &workv1alpha2.ClusterResourceBindingList{}
	if r.namespaced {
		list = &workv1alpha2.ResourceBindingList{}
	}
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if filter != nil {
		options = append(options, filter)
	}
	err := r.karmada.List(ctx, list, options...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if bound, ok := item.(binding.Object); ok {
				visit(bound)
			}
			return nil
		})
	}
	if err != nil {
		// A cache returns an error only when the process ends or an index is missing.
		log.FromContext(ctx).Error(fmt.Errorf("listing bindings: %w", err), "Bindings are not queued")
	}
}

// onOverride queues the bindings whose template an override policy selects, or selected before
// its update. At the start every binding is queued anyway.
func (r *reconciler) onOverride() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				enqueueLowPriority(q, r.requestsForPolicies(ctx, e.Object))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				enqueueLowPriority(q, r.requestsForPolicies(ctx, e.ObjectOld, e.ObjectNew))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			enqueueLowPriority(q, r.requestsForPolicies(ctx, e.Object))
		},
	}
}

// requestsForPolicies returns the bindings that any of the override policies may affect.
func (r *reconciler) requestsForPolicies(ctx context.Context, policies ...client.Object) []reconcile.Request {
	found := map[types.NamespacedName]struct{}{}
	for _, object := range policies {
		policy, ok := object.(override.Object)
		if !ok {
			continue
		}
		for _, s := range searchesOf(policy) {
			r.forEachBinding(ctx, s.listOption(), func(bound binding.Object) {
				key := client.ObjectKeyFromObject(bound)
				if _, known := found[key]; !known && s.selects(bound.BindingSpec().Resource, r.templateLookup(ctx)) {
					found[key] = struct{}{}
				}
			})
		}
	}
	requests := make([]reconcile.Request, 0, len(found))
	for key := range found {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}
