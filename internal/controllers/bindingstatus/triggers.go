package bindingstatus

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

type queue = loop.Queue[reconcile.Request]

// newBindingHandler returns a handler that queues bindings whose status may have to follow a change
// of their spec. The handlers in this file keep the mark of events from the initial list, so that
// these events get low priority.
//
// Further events do not extend the delay of a queued request, so that a binding that changes all
// the time is written once per window. A binding with a changed spec waits for settleDelay instead,
// because its Works are about to report and an earlier write would soon be outdated.
func newBindingHandler(window func() time.Duration, settleDelay time.Duration) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if bound, ok := e.Object.(binding.Object); ok && isPlaced(bound) {
				q.AddAfter(requestFor(bound), window())
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(binding.Object)
			newer, ok2 := e.ObjectNew.(binding.Object)
			switch {
			case !ok || !ok2:
			case older.GetGeneration() != newer.GetGeneration():
				// The generation changes with every relevant change: a newer template, other
				// clusters, and all fields that the observedGeneration of the condition covers.
				q.AddAfter(requestFor(newer), settleDelay)
			case work.HasNewReport(older, newer):
				q.AddAfter(requestFor(newer), window())
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			q.AddAfter(requestFor(e.Object), window())
		},
	}
}

// isPlaced reports whether a binding was ever scheduled, or has a Work in some cluster because
// another binding requires it. Before that, a binding has no status.
func isPlaced(bound binding.Object) bool {
	return bound.BindingStatus().LastScheduledTime != nil || binding.ExpectedClusters(bound.BindingSpec()).Len() > 0
}

func requestFor(bound client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)}
}

// newWorkHandler returns a handler that queues the binding of a Work whose reported status changed.
func newWorkHandler(window func() time.Duration, settleDelay time.Duration) handler.Funcs {
	enqueue := func(q queue, object client.Object, delay time.Duration) {
		if request, ok := bindingOfWork(object); ok {
			q.AddAfter(request, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			// The initial list is ignored, because every binding is queued at the start anyway.
			if !e.IsInInitialList {
				enqueue(q, e.Object, settleDelay)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*workv1alpha1.Work)
			after, ok2 := e.ObjectNew.(*workv1alpha1.Work)
			switch {
			case !ok || !ok2:
			case isRelevantUpdate(before, after):
				enqueue(q, after, window())
			case isRenderedAgain(before, after):
				enqueue(q, after, settleDelay)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(q, e.Object, window()) },
	}
}

// bindingOfWork returns the binding that the annotations of a Work name. ok is false for a Work
// that another client created.
func bindingOfWork(object metav1.Object) (request reconcile.Request, ok bool) {
	for _, namespaced := range []bool{true, false} {
		if key, ok := binding.ReferencedBinding(object, namespaced); ok {
			return reconcile.Request{NamespacedName: key}, true
		}
	}
	return reconcile.Request{}, false
}

// isRelevantUpdate reports whether an update of a Work can change the status of its binding. It
// compares the reported status and its generation, the suspension and the deletion of the Work, and
// the binding of the Work.
func isRelevantUpdate(before, after *workv1alpha1.Work) bool {
	return !hasSameApplied(before, after) ||
		work.HasUnappliedGeneration(before) != work.HasUnappliedGeneration(after) || work.IsSuspended(before) != work.IsSuspended(after) ||
		work.IsSuspensionObserved(before) != work.IsSuspensionObserved(after) ||
		!work.EqualManifestStatuses(before.Status.ManifestStatuses, after.Status.ManifestStatuses) ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!slices.Equal(loop.WorksByBindingID.Keys(before), loop.WorksByBindingID.Keys(after))
}

// isRenderedAgain reports whether a Work was rendered from another state of its binding or
// template. The member is then about to report, so the binding waits for this report.
func isRenderedAgain(before, after *workv1alpha1.Work) bool {
	return before.Annotations[workv1alpha1.RenderedFromAnnotation] != after.Annotations[workv1alpha1.RenderedFromAnnotation]
}

func hasSameApplied(before, after *workv1alpha1.Work) bool {
	older := conditions.Get(before.Status.Conditions, workv1alpha1.WorkApplied)
	newer := conditions.Get(after.Status.Conditions, workv1alpha1.WorkApplied)
	if older == nil || newer == nil {
		return older == newer
	}
	return older.Status == newer.Status && older.Message == newer.Message
}
