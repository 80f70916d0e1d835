package lookup

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"karmada.io/karmada/internal/domain/binding"
)

// OldOrNewMatches returns a predicate that selects a binding if its state before or after the event
// matches. A controller thus also receives the event after which a binding no longer matches, and
// can drop its state for that binding.
func OldOrNewMatches(holds func(binding.Object) bool) predicate.Predicate {
	of := func(object client.Object) bool {
		bound, ok := object.(binding.Object)
		return ok && holds(bound)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return of(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return of(e.ObjectOld) || of(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return of(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return of(e.Object) },
	}
}
