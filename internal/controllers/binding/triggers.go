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
	"karmada.io/karmada/internal/access/remake"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/work"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// behind queues bindings because of something else than themselves: they wait for
// those that users work on.
func behind(q queue, requests []reconcile.Request) {
	if ranked, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		ranked.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, requests...)
		return
	}
	for _, request := range requests {
		q.Add(request)
	}
}

// worthALook leaves out changes of a binding that mean nothing to its Works.
func worthALook() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		older, ok := e.ObjectOld.(binding.Object)
		newer, ok2 := e.ObjectNew.(binding.Object)
		return ok && ok2 && changed(older, newer)
	}}
}

func changed(older, newer binding.Object) bool {
	return older.GetGeneration() != newer.GetGeneration() ||
		(older.GetDeletionTimestamp() == nil) != (newer.GetDeletionTimestamp() == nil) ||
		binding.PermanentID(older) != binding.PermanentID(newer)
}

// onWork looks at a binding again when one of its Works is gone, or appears where
// it has no reason to be: the binding may have moved on while it was written, or
// be gone itself. At the start every Work leads to its binding, in case there is
// none. A Work that the binding still wants is made again after a pause if its cluster
// pulls.
func (r *reconciler) onWork() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			of, ok := e.Object.(*workv1alpha1.Work)
			key, ok2 := binding.LedTo(e.Object, r.namespaced)
			switch {
			case !ok || !ok2:
			case e.IsInInitialList:
				behind(q, []reconcile.Request{{NamespacedName: key}})
			case !r.expects(ctx, key, of):
				q.Add(reconcile.Request{NamespacedName: key})
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			of, ok := e.Object.(*workv1alpha1.Work)
			key, ok2 := binding.LedTo(e.Object, r.namespaced)
			if !ok || !ok2 {
				return
			}
			r.written.gone(key, of)
			delay := time.Duration(0)
			if r.expects(ctx, key, of) {
				delay = remake.Delay(ctx, r.karmada, of)
			}
			q.AddAfter(reconcile.Request{NamespacedName: key}, delay)
		},
	}
}

func (r *reconciler) expects(ctx context.Context, key types.NamespacedName, of *workv1alpha1.Work) bool {
	bound := binding.New(r.namespaced)
	if err := r.karmada.Get(ctx, key, bound, client.UnsafeDisableDeepCopy); err != nil || bound.GetDeletionTimestamp() != nil {
		return false
	}
	cluster, ok := work.ClusterOf(of.Namespace)
	return ok && binding.Expected(bound.BindingSpec()).Has(cluster)
}

// onCluster looks at the bindings that a cluster is a target of: when it is
// registered, and when override policies may choose it differently than before.
func (r *reconciler) onCluster() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				behind(q, r.aimedAt(ctx, e.Object.GetName()))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if ok && ok2 && redescribed(older, newer) && r.attributesMatter(ctx) {
				behind(q, r.aimedAt(ctx, newer.Name))
			}
		},
	}
}

// redescribed tells that a selector of clusters may judge the cluster differently.
func redescribed(older, newer *clusterv1alpha1.Cluster) bool {
	return !maps.Equal(older.Labels, newer.Labels) || older.Spec.Provider != newer.Spec.Provider ||
		older.Spec.Region != newer.Spec.Region || !slices.Equal(older.Spec.Zones, newer.Spec.Zones)
}

func (r *reconciler) attributesMatter(ctx context.Context) bool {
	for _, list := range []client.ObjectList{&policyv1alpha1.ClusterOverridePolicyList{}, &policyv1alpha1.OverridePolicyList{}} {
		err := r.karmada.List(ctx, list, client.MatchingFields{attributesField: byAttributes}, client.UnsafeDisableDeepCopy, client.Limit(1))
		if err != nil || meta.LenList(list) > 0 {
			return true
		}
	}
	return false
}

func (r *reconciler) aimedAt(ctx context.Context, cluster string) []reconcile.Request {
	var requests []reconcile.Request
	r.each(ctx, client.MatchingFields{targetField: cluster}, func(bound binding.Object) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)})
	})
	return requests
}

// each visits the bindings that a filter lets through, without copying them.
func (r *reconciler) each(ctx context.Context, filter client.ListOption, visit func(binding.Object)) {
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
		// A cache answers unless the process ends or an index is missing.
		log.FromContext(ctx).Error(fmt.Errorf("listing bindings: %w", err), "bindings are not looked at")
	}
}

// onOverride looks at the bindings whose template an override policy selects now
// or selected before. At the start every binding is looked at anyway.
func (r *reconciler) onOverride() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				behind(q, r.concerned(ctx, e.Object))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				behind(q, r.concerned(ctx, e.ObjectOld, e.ObjectNew))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			behind(q, r.concerned(ctx, e.Object))
		},
	}
}

// concerned are the bindings that any of the override policies concerns.
func (r *reconciler) concerned(ctx context.Context, policies ...client.Object) []reconcile.Request {
	found := map[types.NamespacedName]struct{}{}
	for _, object := range policies {
		policy, ok := object.(override.Object)
		if !ok {
			continue
		}
		for _, s := range searches(policy) {
			r.each(ctx, s.filter(), func(bound binding.Object) {
				key := client.ObjectKeyFromObject(bound)
				if _, known := found[key]; !known && s.selects(bound.BindingSpec().Resource, r.labelled(ctx)) {
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
