package namespace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/remake"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/domain/work"
)

type (
	queue    = workqueue.TypedRateLimitingInterface[request]
	handlers = handler.TypedFuncs[client.Object, request]
)

// propagated tells whether a Namespace goes to the clusters. The default one is
// in each of them anyway.
func propagated(namespace *unstructured.Unstructured, skipped reach.SkippedNamespaces) bool {
	name := namespace.GetName()
	return name != "default" && !skipped.Skips(gvk, "", name) && namespace.GetDeletionTimestamp() == nil &&
		!strings.EqualFold(namespace.GetLabels()[policyv1alpha1.NamespaceSkipAutoPropagationLabel], "true")
}

// workName is how the Work of a Namespace is called.
func workName(namespace string) string { return work.Name(gvk.Kind, "", namespace) }

// namespaceOf is the Namespace whose Work has that name. The name of a Work begins
// with that of its object, and the rest of it tells whether that is a Namespace.
func namespaceOf(name string) (string, bool) {
	end := strings.LastIndexByte(name, '-')
	if end < 0 {
		return "", false
	}
	return name[:end], workName(name[:end]) == name
}

// behind queues pairs because of something else than their Namespace.
func behind(q queue, requests []request) {
	if ranked, ok := q.(priorityqueue.PriorityQueue[request]); ok {
		ranked.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, requests...)
		return
	}
	for _, about := range requests {
		q.Add(about)
	}
}

// onNamespace looks at a Namespace in all clusters, and at all Namespaces in a
// cluster when the place of its Works appears.
func (r *reconciler) onNamespace() handlers {
	look := func(ctx context.Context, object client.Object, q queue) {
		if cluster, ok := work.ClusterOf(object.GetName()); ok {
			behind(q, pairs(r.namespaces(ctx, everything), []string{cluster}))
			return
		}
		for _, about := range pairs([]string{object.GetName()}, r.clusters(ctx)) {
			q.Add(about)
		}
	}
	return handlers{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if _, ok := work.ClusterOf(e.Object.GetName()); !ok || !e.IsInInitialList {
				look(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if changed(e.ObjectOld, e.ObjectNew) {
				look(ctx, e.ObjectNew, q)
			}
		},
	}
}

// changed leaves out what is not propagated.
func changed(older, newer client.Object) bool {
	before, ok := older.(*unstructured.Unstructured)
	after, ok2 := newer.(*unstructured.Unstructured)
	return ok && ok2 && work.PrunedHash(before) != work.PrunedHash(after)
}

// onCluster looks at all Namespaces in a cluster that is registered or described
// anew. Clusters that are there at the start are met through the Namespaces.
func (r *reconciler) onCluster() handlers {
	return handlers{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				behind(q, pairs(r.namespaces(ctx, everything), []string{e.Object.GetName()}))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if ok && ok2 && redescribed(older, newer) {
				behind(q, pairs(r.namespaces(ctx, everything), []string{newer.Name}))
			}
		},
	}
}

// redescribed tells that an override policy may choose the cluster differently.
func redescribed(older, newer *clusterv1alpha1.Cluster) bool {
	return !maps.Equal(older.Labels, newer.Labels) || older.Spec.Provider != newer.Spec.Provider ||
		older.Spec.Region != newer.Spec.Region || !slices.Equal(older.Spec.Zones, newer.Spec.Zones)
}

// onOverride looks at the Namespaces that a policy selects or selected.
func (r *reconciler) onOverride() handlers {
	look := func(ctx context.Context, q queue, policies ...client.Object) {
		selected := func(namespace *unstructured.Unstructured) bool { return concerns(namespace, policies...) }
		behind(q, pairs(r.namespaces(ctx, selected), r.clusters(ctx)))
	}
	return handlers{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				look(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				look(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { look(ctx, q, e.Object) },
	}
}

// concerns tells whether any of the override policies selects the Namespace.
func concerns(namespace *unstructured.Unstructured, policies ...client.Object) bool {
	return slices.ContainsFunc(policies, func(object client.Object) bool {
		candidate, ok := object.(override.Object)
		return ok && override.Specificity(candidate, namespace) != policy.MatchNone
	})
}

// onWork looks at a Namespace again when its Work is gone, or no binding keeps it
// any more. In a cluster that pulls a Work that is gone is made again after a pause.
func (r *reconciler) onWork() handlers {
	look := func(object client.Object, q queue, delay time.Duration) {
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
			if ok && ok2 && work.Bound(older) && !work.Bound(newer) {
				look(newer, q, 0)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			look(e.Object, q, remake.Delay(ctx, r.karmada, e.Object))
		},
	}
}

func everything(*unstructured.Unstructured) bool { return true }

// namespaces are the names of those that are propagated and selected.
func (r *reconciler) namespaces(ctx context.Context, selected func(*unstructured.Unstructured) bool) []string {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	r.list(ctx, list)
	var names []string
	for i := range list.Items {
		if namespace := &list.Items[i]; propagated(namespace, r.options.SkippedNamespaces) && selected(namespace) {
			names = append(names, namespace.GetName())
		}
	}
	return names
}

func (r *reconciler) clusters(ctx context.Context) []string {
	list := &clusterv1alpha1.ClusterList{}
	r.list(ctx, list)
	names := make([]string, 0, len(list.Items))
	for _, cluster := range list.Items {
		names = append(names, cluster.Name)
	}
	return names
}

func (r *reconciler) list(ctx context.Context, into client.ObjectList) {
	if err := r.karmada.List(ctx, into, client.UnsafeDisableDeepCopy); err != nil {
		// A cache answers unless the process ends.
		log.FromContext(ctx).Error(fmt.Errorf("listing %T: %w", into, err), "namespaces are not looked at")
	}
}

// pairs are the items for some Namespaces in some clusters.
func pairs(namespaces, clusters []string) []request {
	requests := make([]request, 0, len(namespaces)*len(clusters))
	for _, namespace := range namespaces {
		for _, cluster := range clusters {
			requests = append(requests, request{namespace: namespace, cluster: cluster})
		}
	}
	return requests
}
