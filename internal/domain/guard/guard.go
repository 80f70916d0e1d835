// Package guard decides whether the objects of a deleted Work are deleted or kept in the member, or
// whether the deletion is held.
//
// A deleted Work does not contain the reason for its deletion. The control plane collects the
// explanations: a user deleted the template or changed the placement or the replicas, healthy
// copies in other clusters replace the copy, or the cluster is unregistered. A deletion without an
// explanation is held until a user confirms it or an explanation is found. If a Work is deleted
// although its owner still requires it, the deletion is a mistake: the Work is released, and its
// objects are kept for the next Work.
//
// Invariants: every decision is a pure function of its arguments. A fact that is not observed
// explains nothing. More evidence for a deletion never turns Delete into Hold.
package guard

import "time"

// Owner is the observed state of the owner of a Work.
type Owner int

// States of the owner of a Work that is being deleted.
const (
	// OwnerNone means that the Work has no owner, because a user created and deletes it.
	OwnerNone Owner = iota
	// OwnerRequiresWork means that the owner still requires the objects of the Work in this
	// cluster.
	OwnerRequiresWork
	// OwnerDropsWork means that the owner exists and no longer requires the objects of the Work in
	// this cluster.
	OwnerDropsWork
	// OwnerGone means that the owner is deleted or is being deleted.
	OwnerGone
)

// TemplateState is the state of the template of a Work whose owner does not exist.
type TemplateState int

// States of a template.
const (
	// TemplateNotRead means that the template was not read yet.
	TemplateNotRead TemplateState = iota
	// TemplateUnreadable means that reading the template failed.
	TemplateUnreadable
	// TemplateNotServed means that the control plane does not serve the kind of the template, so a
	// read cannot prove that the template was deleted.
	TemplateNotServed
	// TemplateInUse means that the template exists, and a policy claims it or a workload depends on
	// it.
	TemplateInUse
	// TemplateDeleted means that the template is deleted or is being deleted, or that another
	// object has its name.
	TemplateDeleted
	// TemplateUnclaimed means that the template exists, but no policy claims it and no workload
	// depends on it.
	TemplateUnclaimed
)

// Facts are the facts about the deletion of one Work. The zero value describes a Work that a
// user created.
type Facts struct {
	// ClusterUnregistering is true if the cluster is being unregistered.
	ClusterUnregistering bool
	Owner                Owner
	// IsSuspended is true if a user suspended the dispatching of the owner to the cluster.
	IsSuspended bool
	// HasDeparted is true if the binding records that it left the cluster because a user changed
	// the placement or the replicas, or because an eviction ended.
	HasDeparted bool
	// Excluded is true if users exclude the cluster: the placement excludes the cluster by name, or
	// a taint or an eviction removes the workload from the cluster.
	Excluded bool
	// Unmatched is true if a change of the Cluster may be the reason for the deletion, because its
	// labels, provider, region or zones do not match the placement.
	Unmatched bool
	// LacksTargets is true if the binding has no cluster any more, so that no copy can replace this
	// copy.
	LacksTargets bool
	// ContainsUndecided is true for the Work of a deleted Namespace in which the deletion of other
	// objects is not decided.
	ContainsUndecided bool
	// IsReplaced is true if healthy copies in other clusters have everything that the template
	// requires.
	IsReplaced bool
	// Template is the state of the template. It is used only if Owner is OwnerGone.
	Template TemplateState
	// IsRecreated is true if a binding for another template of the same name requires its objects
	// in the cluster. It is used only if Owner is OwnerGone.
	IsRecreated bool
	// HeldFor is the reason for which this deletion is held, or NoReason.
	HeldFor Reason
	// IsConfirmed and IsRejected are true if a user confirmed or rejected this deletion.
	IsConfirmed, IsRejected bool
	// RestoreUnconfirmed is true if the control plane was restored from a backup and no user
	// confirmed the restore.
	RestoreUnconfirmed bool
	// AlreadyAllowed is true if an earlier decision on this deletion was Delete, so an agent may
	// already execute it.
	AlreadyAllowed bool
	// ClusterUnreachable is true if no request can be sent to the cluster, or if its agent does not
	// report.
	ClusterUnreachable bool
	// PreservesObjects is true if the Work only releases its objects in the member when it is
	// deleted, and deletes none.
	PreservesObjects bool
	// AgentLostPermissions is true if the agent of the cluster may delete the objects but can no
	// longer do so, because its permissions were deleted together with the execution namespace.
	AgentLostPermissions bool
	// DeletionAge is the time since the deletion of the Work began. HoldAge is the time since this
	// process first held the deletion.
	DeletionAge, HoldAge time.Duration
}

// Action is what happens to the objects of a deleted Work.
type Action int

// Values of Action.
const (
	// Hold changes nothing until a user confirms the deletion, an explanation is found, or a wait
	// ends. It is the zero value, so that an incomplete decision deletes nothing.
	Hold Action = iota
	// Keep releases the Work and keeps its objects for the next Work.
	Keep
	// Delete deletes the objects, or releases objects that the Work preserves, and then releases
	// the Work.
	Delete
)

// Decision is the decision about the deletion of a Work.
type Decision struct {
	Action Action
	// Reason is the reason for the action Hold, and NoReason for all other actions.
	Reason Reason
	// IsReported is true if users must be told that the deletion is held.
	IsReported bool
	// RecheckAfter is the delay after which a held deletion is decided again.
	RecheckAfter time.Duration
}

// Reason is the reason why a deletion is held.
type Reason int

// Values of Reason.
const (
	// NoReason means that the deletion is not held.
	NoReason Reason = iota
	// ReasonRestoreUnconfirmed means that the control plane was restored from a backup and no user
	// confirmed the restore.
	ReasonRestoreUnconfirmed
	// ReasonSuspended means that a user suspended the dispatching to the cluster.
	ReasonSuspended
	// ReasonNotReplaced means that no change by a user explains the deletion, and that no healthy
	// copies in other clusters replace the copy.
	ReasonNotReplaced
	// ReasonClusterChanged means that, because of a change of the Cluster, the cluster no longer
	// matches the placement of many workloads.
	ReasonClusterChanged
	// ReasonBudgetExceeded means that more templates lose their last copy than the budget allows.
	ReasonBudgetExceeded
	// ReasonNamespaceInUse means that a Namespace contains objects whose deletion is not decided.
	ReasonNamespaceInUse
	// ReasonTemplateInUse means that the binding does not exist, but its template exists and a
	// policy claims it.
	ReasonTemplateInUse
	// ReasonTemplateUnreadable means that the binding does not exist, and reading the template
	// failed.
	ReasonTemplateUnreadable
	// ReasonTemplateNotServed means that the binding does not exist, and the control plane does not
	// serve the kind of its template.
	ReasonTemplateNotServed
	// ReasonTemplateNotRead means that the decision depends on the state of the template, which
	// Facts does not contain yet.
	ReasonTemplateNotRead
	// ReasonCounting means that other deletions with the same cause are still expected, and must be
	// counted before the limits apply.
	ReasonCounting
	// ReasonClusterUnreachable means that nothing can be deleted in the cluster, and that the
	// decision may change until the cluster is reachable again.
	ReasonClusterUnreachable
	// ReasonNotPermitted means that the control plane has not permitted an agent to delete the
	// objects.
	ReasonNotPermitted
	// ReasonEpochUnreadable means that an agent may not read the epoch of the control plane, so
	// that the agent cannot verify its permission to delete the objects.
	ReasonEpochUnreadable
)

// IsTransient reports whether the deletion only waits: no fact argues against it, so an earlier
// permission stays valid and users are not told about the wait.
func (r Reason) IsTransient() bool {
	return r == ReasonTemplateNotRead || r == ReasonCounting || r == ReasonClusterUnreachable
}

const (
	// GatherPeriod is the maximum expected time between the first and the last deletion that one
	// change causes.
	GatherPeriod = 5 * time.Second
	// reportDelay is how long most deletions are held before users are told. A template and its
	// binding are deleted at about the same time, so the deletion of the template usually explains
	// the deletion of the Work within this time.
	reportDelay = 5 * time.Second
	// minRecheckDelay and maxRecheckDelay limit the delay before a held deletion is decided again.
	minRecheckDelay, maxRecheckDelay = 5 * time.Millisecond, 30 * time.Second
)

// reportDelay returns how long a deletion may be held for this reason before users are told. The
// delay is 0 if waiting cannot explain the deletion: for a number of deletions, for a restored
// control plane, and for a template of a kind that is not served any more, because the deletion of
// this template cannot be observed.
func (r Reason) reportDelay() time.Duration {
	switch r {
	case ReasonClusterChanged, ReasonBudgetExceeded, ReasonRestoreUnconfirmed, ReasonTemplateNotServed:
		return 0
	default:
		return reportDelay
	}
}

// hold returns the decision to hold a deletion. The recheck delay doubles with each recheck, but
// the deletion is also decided again at the time at which users must be told.
func (f Facts) hold(reason Reason) Decision {
	decision := Decision{Reason: reason, RecheckAfter: min(max(f.HoldAge, minRecheckDelay), maxRecheckDelay)}
	switch untilReport := reason.reportDelay() - f.DeletionAge; {
	case reason == ReasonCounting:
		decision.RecheckAfter = GatherPeriod - f.DeletionAge
	case reason.IsTransient():
	case untilReport > 0:
		decision.RecheckAfter = min(decision.RecheckAfter, untilReport)
	default:
		decision.IsReported = true
	}
	return decision
}

// Decide returns the decision about the deletion of one Work. If the reason is
// ReasonTemplateNotRead, the caller reads the template and decides again. If the action is Delete
// without counts, the caller counts the deletion if Limits.Applicable says so, and decides again.
func Decide(f Facts, c Counts, l Limits) Decision {
	action, reason := f.decideAction(c, l)
	if action == Hold && f.PreservesObjects && reason != ReasonSuspended {
		// Nothing is deleted, so no explanation is needed.
		action, reason = Delete, NoReason
	}
	switch {
	case action == Delete && f.AgentLostPermissions:
		return Decision{Action: Keep}
	case (action == Delete || reason == ReasonTemplateNotRead) && f.ClusterUnreachable && !f.ClusterUnregistering:
		return f.hold(ReasonClusterUnreachable)
	case action == Hold:
		return f.hold(reason)
	default:
		return Decision{Action: action}
	}
}

// decideAction returns what happens to the objects if the cluster is reachable and the Work does
// not preserve them.
func (f Facts) decideAction(c Counts, l Limits) (Action, Reason) {
	switch {
	case f.IsRejected:
		return Keep, NoReason
	case f.RestoreUnconfirmed && (f.ClusterUnregistering || f.Owner != OwnerRequiresWork):
		return Hold, ReasonRestoreUnconfirmed
	case f.ClusterUnregistering:
		return Delete, NoReason
	case f.Owner == OwnerRequiresWork:
		return Keep, NoReason
	case f.IsSuspended:
		return Hold, ReasonSuspended
	case f.IsConfirmed, f.AlreadyAllowed:
		return Delete, NoReason
	case f.Owner == OwnerGone && f.Template != TemplateDeleted && f.Template != TemplateUnclaimed:
		return Hold, f.Template.holdReason()
	case f.ContainsUndecided:
		return Hold, ReasonNamespaceInUse
	case c != Counts{} && f.DeletionAge < GatherPeriod:
		return Hold, ReasonCounting
	case f.isUnmatchedOnly() && (f.HeldFor == ReasonClusterChanged || c.ChangedCluster >= l.ChangedCluster):
		return Hold, ReasonClusterChanged
	case f.Owner == OwnerDropsWork && !f.isExplained():
		return Hold, ReasonNotReplaced
	case !f.losesLastCopy() || f.HeldFor != ReasonBudgetExceeded && !l.isExceeded(c):
		return Delete, NoReason
	case f.IsRecreated:
		return Keep, NoReason
	default:
		return Hold, ReasonBudgetExceeded
	}
}

// isExplained reports whether a user or an ended move explains that the owner drops the Work. A
// change of the Cluster explains it only if no other cluster is to replace the copy.
func (f Facts) isExplained() bool {
	return f.HasDeparted || f.Excluded || f.IsReplaced || f.Unmatched && f.LacksTargets
}

// isUnmatchedOnly reports whether a change of the Cluster is the only observed reason of the
// deletion. Healthy copies in other clusters are no reason then, because every workload of the
// cluster may depend on its own copy there. A held deletion stays held after the change is
// reverted, because the scheduler then returns the cluster to the binding.
func (f Facts) isUnmatchedOnly() bool {
	return f.Owner == OwnerDropsWork && (f.Unmatched || f.HeldFor == ReasonClusterChanged) && !f.HasDeparted && !f.Excluded
}

// losesLastCopy reports whether the deletion may stop the last copy of a template.
func (f Facts) losesLastCopy() bool {
	return f.Owner == OwnerGone || f.Owner == OwnerDropsWork && !f.IsReplaced
}

// holdReason returns the reason for which the Work of a missing binding is held, if the template
// has this state. The reason does not depend on the number of deleted Works, because a missing
// binding does not prove that a user wants the deletion.
func (t TemplateState) holdReason() Reason {
	switch t {
	case TemplateNotRead:
		return ReasonTemplateNotRead
	case TemplateInUse:
		return ReasonTemplateInUse
	case TemplateNotServed:
		return ReasonTemplateNotServed
	default:
		return ReasonTemplateUnreadable
	}
}
