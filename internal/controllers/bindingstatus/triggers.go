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

// onBinding queues bindings whose status may have to follow their spec. The
// handlers below pass on whether an event is of the initial list, which then
// waits behind everything else.
//
// The delay of a request that is queued already is not prolonged by further
// events: under constant change a binding is written once a window. A binding
// that changed waits for patience instead: its Works are about to answer, and
// what they say is worth more than that they have not answered yet.
func onBinding(window, patience time.Duration) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if bound, ok := e.Object.(binding.Object); ok && placed(bound) {
				q.AddAfter(requestFor(bound), window)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			// The generation counts what matters: a newer template, other clusters,
			// and everything that the condition has to say it has seen.
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				q.AddAfter(requestFor(e.ObjectNew), patience)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			q.AddAfter(requestFor(e.Object), window)
		},
	}
}

// placed tells that a binding has been given clusters once, or is needed in some:
// before that there is nothing to tell about it.
func placed(bound binding.Object) bool {
	return bound.BindingStatus().LastScheduledTime != nil || binding.Expected(bound.BindingSpec()).Len() > 0
}

func requestFor(bound client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)}
}

// onWork queues the binding of a Work that tells something else than before.
func onWork(window, patience time.Duration) handler.Funcs {
	add := func(q queue, object client.Object, delay time.Duration) {
		if request, ok := bindingOf(object); ok {
			q.AddAfter(request, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			// After a start every binding is looked at anyway.
			if !e.IsInInitialList {
				add(q, e.Object, patience)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*workv1alpha1.Work)
			after, ok2 := e.ObjectNew.(*workv1alpha1.Work)
			if ok && ok2 && tellsOther(before, after) {
				add(q, after, window)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object, window) },
	}
}

// bindingOf is the binding that a Work was made of, by the annotations that lead
// back to it; ok is false for a Work made by others.
func bindingOf(object metav1.Object) (request reconcile.Request, ok bool) {
	for _, namespaced := range []bool{true, false} {
		if key, ok := binding.LedTo(object, namespaced); ok {
			return reconcile.Request{NamespacedName: key}, true
		}
	}
	return reconcile.Request{}, false
}

// tellsOther tells whether an update of a Work can change what its binding says:
// what it reports, whether that is about what it says now, whether it counts, and
// for which binding.
func tellsOther(before, after *workv1alpha1.Work) bool {
	return !sameApplied(before, after) ||
		work.Behind(before) != work.Behind(after) || work.Suspended(before) != work.Suspended(after) ||
		work.HeldBack(before) != work.HeldBack(after) ||
		!work.SameManifestStatuses(before.Status.ManifestStatuses, after.Status.ManifestStatuses) ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!slices.Equal(bindingIDs(before), bindingIDs(after))
}

func sameApplied(before, after *workv1alpha1.Work) bool {
	older := conditions.Get(before.Status.Conditions, workv1alpha1.WorkApplied)
	newer := conditions.Get(after.Status.Conditions, workv1alpha1.WorkApplied)
	if older == nil || newer == nil {
		return older == newer
	}
	return older.Status == newer.Status && older.Message == newer.Message
}

// bindingIDIndex finds the Works of a binding, by the label that holds its id.
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
			ids = append(ids, indexed(label, id))
		}
	}
	return ids
}

// indexed keeps the ids of both scopes apart.
func indexed(label, id string) string { return label + "=" + id }

// works are the Works of a binding; they must not be modified. One that leads to
// another binding is not its own: who copies a binding copies the id.
func (r *reconciler) works(ctx context.Context, of binding.Object) ([]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	id := indexed(binding.PermanentIDLabel(of), binding.PermanentID(of))
	if err := r.karmada.List(ctx, list, client.MatchingFields{bindingIDIndex: id}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Works of binding %q: %w", client.ObjectKeyFromObject(of), err)
	}
	works := make([]*workv1alpha1.Work, 0, len(list.Items))
	for i := range list.Items {
		if binding.IsOf(&list.Items[i], of) {
			works = append(works, &list.Items[i])
		}
	}
	return works, nil
}
