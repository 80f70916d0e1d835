package policy

import (
	"slices"
	"strings"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// SuspensionChange describes a change of a binding's suspension in an event on the template.
type SuspensionChange struct {
	// Suspended is true if scheduling or dispatching is suspended now.
	Suspended bool
	Message   string
}

// DescribeSuspension describes how the binding's suspension changed, or returns false if it did not.
// before is nil for a new binding.
func DescribeSuspension(before, after binding.Object) (SuspensionChange, bool) {
	previous := ""
	if before != nil {
		previous = suspensionText(before)
	}
	current := suspensionText(after)
	switch {
	case previous == current:
		return SuspensionChange{}, false
	case current == "":
		return SuspensionChange{Message: "Suspension ended: changes are scheduled and dispatched to all clusters"}, true
	}
	return SuspensionChange{Suspended: true, Message: conditions.LimitMessage(current)}, true
}

// suspensionText describes what is suspended and by which object, or returns an empty string if nothing
// is suspended.
func suspensionText(of binding.Object) string {
	suspension := of.BindingSpec().Suspension
	if suspension == nil {
		return ""
	}
	var parts []string
	if text := dispatchingText(suspension); text != "" {
		parts = append(parts, suspendingObject(of)+" suspends "+text)
	}
	if suspension.Scheduling != nil && *suspension.Scheduling {
		parts = append(parts, "binding "+of.GetName()+" suspends scheduling: its clusters stay as they are")
	}
	return strings.Join(parts, "; ")
}

func dispatchingText(suspension *workv1alpha2.Suspension) string {
	if suspension.Dispatching != nil && *suspension.Dispatching {
		return "dispatching: changes reach no cluster"
	}
	if suspension.DispatchingOnClusters == nil || len(suspension.DispatchingOnClusters.ClusterNames) == 0 {
		return ""
	}
	names := slices.Clone(suspension.DispatchingOnClusters.ClusterNames)
	slices.Sort(names)
	if len(names) == 1 {
		return "dispatching: changes do not reach cluster " + names[0]
	}
	return "dispatching: changes do not reach clusters " + strings.Join(slices.Compact(names), ", ")
}

func suspendingObject(of binding.Object) string {
	claim, claimed := ClaimedBy(of)
	if !claimed {
		return "binding " + of.GetName()
	}
	return claim.DisplayName()
}
