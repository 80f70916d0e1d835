package policy

import (
	"slices"
	"strings"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// SuspensionNews is what the owner of a template has to know of a change of its
// binding.
type SuspensionNews struct {
	// Suspended reports whether anything is suspended now; else all of it goes on.
	Suspended bool
	Message   string
}

// DescribeSuspension compares the suspension of a binding with what it was before.
// It returns false when nothing changed. before is nil for a new binding.
func DescribeSuspension(before, after binding.Object) (SuspensionNews, bool) {
	was := ""
	if before != nil {
		was = suspensionText(before)
	}
	is := suspensionText(after)
	switch {
	case was == is:
		return SuspensionNews{}, false
	case is == "":
		return SuspensionNews{Message: "Nothing is suspended any longer: changes are scheduled and dispatched to all clusters"}, true
	}
	return SuspensionNews{Suspended: true, Message: conditions.Clip(is)}, true
}

// suspensionText says what is suspended and by which object; empty for nothing.
func suspensionText(of binding.Object) string {
	suspension := of.BindingSpec().Suspension
	if suspension == nil {
		return ""
	}
	var parts []string
	if text := dispatchingText(suspension); text != "" {
		parts = append(parts, suspenderOf(of)+" suspends "+text)
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

func suspenderOf(of binding.Object) string {
	claim, claimed := ClaimedBy(of)
	if !claimed {
		return "binding " + of.GetName()
	}
	return claim.Title()
}
