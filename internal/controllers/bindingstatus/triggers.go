package bindingstatus

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// onBinding queues bindings whose status may have to follow their spec. The handlers below
// keep the mark of events from the initial list, which get low priority.
//
// Further events do not extend the delay of a queued request: under constant change, a binding
// is written once per window. A changed binding waits for settleDelay instead, because its
// Works are about to report and a write before that would be useless.
func onBinding(window, settleDelay time.Duration) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if bound, ok := e.Object.(binding.Object); ok && isPlaced(bound) {
				q.AddAfter(requestFor(bound), window)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			// The generation changes with everything relevant: a newer template, other
			// clusters, and all fields that the condition's observedGeneration covers.
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				q.AddAfter(requestFor(e.ObjectNew), settleDelay)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			q.AddAfter(requestFor(e.Object), window)
		},
	}
}

// isPlaced reports whether a binding was scheduled once, or is required in some cluster.
// Before that it has no status.
func isPlaced(bound binding.Object) bool {
	return bound.BindingStatus().LastScheduledTime != nil || binding.ExpectedClusters(bound.BindingSpec()).Len() > 0
}

func requestFor(bound client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)}
}

// onWork queues the binding of a Work whose report changed.
func onWork(window, settleDelay time.Duration) handler.Funcs {
	enqueue := func(q queue, object client.Object, delay time.Duration) {
		if request, ok := bindingOfWork(object); ok {
			q.AddAfter(request, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			// After a start every binding is queued anyway.
			if !e.IsInInitialList {
				enqueue(q, e.Object, settleDelay)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*workv1alpha1.Work)
			after, ok2 := e.ObjectNew.(*workv1alpha1.Work)
			if ok && ok2 && isRelevantUpdate(before, after) {
				enqueue(q, after, window)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(q, e.Object, window) },
	}
}

// bindingOfWork returns the binding of a Work, identified by the Work's annotations; ok is
// false for a Work that another client made.
func bindingOfWork(object metav1.Object) (request reconcile.Request, ok bool) {
	for _, namespaced := range []bool{true, false} {
		if key, ok := binding.ReferencedBinding(object, namespaced); ok {
			return reconcile.Request{NamespacedName: key}, true
		}
	}
	return reconcile.Request{}, false
}

// isRelevantUpdate reports whether an update of a Work can change the status of its binding:
// the report, the generation that it is for, whether the Work counts, or the binding.
func isRelevantUpdate(before, after *workv1alpha1.Work) bool {
	return !hasSameApplied(before, after) ||
		work.HasUnappliedGeneration(before) != work.HasUnappliedGeneration(after) || work.IsSuspended(before) != work.IsSuspended(after) ||
		work.IsSuspensionObserved(before) != work.IsSuspensionObserved(after) ||
		!work.EqualManifestStatuses(before.Status.ManifestStatuses, after.Status.ManifestStatuses) ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!slices.Equal(bindingIDs(before), bindingIDs(after))
}

func hasSameApplied(before, after *workv1alpha1.Work) bool {
	older := conditions.Get(before.Status.Conditions, workv1alpha1.WorkApplied)
	newer := conditions.Get(after.Status.Conditions, workv1alpha1.WorkApplied)
	if older == nil || newer == nil {
		return older == newer
	}
	return older.Status == newer.Status && older.Message == newer.Message
}

// bindingIDIndex is the index of Works by the label with the permanent ID of their binding.
const bindingIDIndex = Name + "/binding-id"

func indexWorks(indexer client.FieldIndexer) error {
	err := indexer.IndexField(context.Background(), &workv1alpha1.Work{}, bindingIDIndex,
		func(object client.Object) []string { return bindingIDs(object) })
	if err != nil {
		return fmt.Errorf("indexing Works by binding: %w", err)
	}
	return nil
}

func bindingIDs(object metav1.Object) []string {
	var ids []string
	for _, label := range []string{workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel} {
		if id := object.GetLabels()[label]; id != "" {
			ids = append(ids, indexKey(label, id))
		}
	}
	return ids
}

// indexKey contains the label, because IDs of both scopes may be equal.
func indexKey(label, id string) string { return label + "=" + id }

// listWorks returns the Works of a binding; they must not be modified. A Work with annotations
// of another binding is left out, because a copied binding has the same ID.
func (r *reconciler) listWorks(ctx context.Context, bound binding.Object) ([]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	id := indexKey(binding.PermanentIDLabel(bound), binding.PermanentID(bound))
	if err := r.karmada.List(ctx, list, client.MatchingFields{bindingIDIndex: id}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Works of binding %q: %w", client.ObjectKeyFromObject(bound), err)
	}
	works := make([]*workv1alpha1.Work, 0, len(list.Items))
	for i := range list.Items {
		if binding.BelongsTo(&list.Items[i], bound) {
			works = append(works, &list.Items[i])
		}
	}
	return works, nil
}
