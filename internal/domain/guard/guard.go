// Package guard decides whether the objects of a deleted Work may be deleted in the member.
//
// A deleted Work does not contain the reason for its deletion. The control plane collects the
// explanations: a user deleted the template or changed the placement or the replicas, healthy copies
// in other clusters replace the copy, or the cluster is unregistered. A deletion without an
// explanation is held until a user confirms it or an explanation is found. If a Work is deleted
// although its owner still requires it, the deletion is a mistake: the Work is released, and its
// objects stay for the next Work.
//
// Invariants: every verdict is a pure function of its arguments. An unknown fact explains nothing.
// More evidence for a deletion never turns Delete into Hold.
package guard

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

// TemplateState is the state of the template of a Work whose owner is gone.
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
	// AlreadyAllowed is true if an earlier verdict on this deletion was Delete, so an agent may
	// already execute it.
	AlreadyAllowed bool
}

// Verdict is the decision about a deletion.
type Verdict int

// Values of Verdict.
const (
	// Delete deletes the objects and then releases the Work.
	Delete Verdict = iota
	// HandOver releases the Work and keeps its objects for the next Work.
	HandOver
	// ReadTemplate requires the caller to read the template and decide again.
	ReadTemplate
	// Hold changes nothing until a user confirms the deletion or an explanation is found.
	Hold
)

// Reason is the reason of the verdict Hold. It is NoReason for the other verdicts.
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
	// ReasonTemplateInUse means that the binding is gone, but its template exists and a policy
	// claims it.
	ReasonTemplateInUse
	// ReasonTemplateUnreadable means that the binding is gone, and reading the template failed.
	ReasonTemplateUnreadable
	// ReasonTemplateNotServed means that the binding is gone, and the control plane does not serve
	// the kind of its template.
	ReasonTemplateNotServed
)

// Decide returns the verdict on the deletion of one Work, and the reason if the verdict is Hold.
func Decide(f Facts, c Counts, l Limits) (Verdict, Reason) {
	switch {
	case f.IsRejected:
		return HandOver, NoReason
	case f.RestoreUnconfirmed && (f.ClusterUnregistering || f.Owner != OwnerRequiresWork):
		return Hold, ReasonRestoreUnconfirmed
	case f.ClusterUnregistering:
		return Delete, NoReason
	case f.Owner == OwnerRequiresWork:
		return HandOver, NoReason
	case f.IsSuspended:
		return Hold, ReasonSuspended
	case f.IsConfirmed, f.AlreadyAllowed:
		return Delete, NoReason
	case f.Owner == OwnerGone && f.Template != TemplateDeleted && f.Template != TemplateUnclaimed:
		return decideMissingOwner(f.Template)
	case f.ContainsUndecided:
		return Hold, ReasonNamespaceInUse
	case f.isUnmatchedOnly() && (f.HeldFor == ReasonClusterChanged || c.ChangedCluster >= l.ChangedCluster):
		return Hold, ReasonClusterChanged
	case f.Owner == OwnerDropsWork && !f.isExplained():
		return Hold, ReasonNotReplaced
	case !f.losesLastCopy() || f.HeldFor != ReasonBudgetExceeded && !l.isExceeded(c):
		return Delete, NoReason
	case f.IsRecreated:
		return HandOver, NoReason
	default:
		return Hold, ReasonBudgetExceeded
	}
}

// isExplained reports whether a user or an ended move explains that the owner drops the Work. A change
// of the Cluster explains it only if no other cluster is to replace the copy.
func (f Facts) isExplained() bool {
	return f.HasDeparted || f.Excluded || f.IsReplaced || f.Unmatched && f.LacksTargets
}

// isUnmatchedOnly reports whether a change of the Cluster is the only known reason of the deletion.
// Healthy copies in other clusters are no reason then, because every workload of the cluster may
// depend on its own copy there. A held deletion stays held after the change is reverted, because the
// scheduler then returns the cluster to the binding.
func (f Facts) isUnmatchedOnly() bool {
	return f.Owner == OwnerDropsWork && (f.Unmatched || f.HeldFor == ReasonClusterChanged) && !f.HasDeparted && !f.Excluded
}

// losesLastCopy reports whether the deletion may stop the last copy of a template.
func (f Facts) losesLastCopy() bool {
	return f.Owner == OwnerGone || f.Owner == OwnerDropsWork && !f.IsReplaced
}

// decideMissingOwner returns the verdict on a Work whose binding is gone, if the template is not
// known to be deleted. The verdict does not depend on the number of deleted Works, because a
// missing binding does not prove that a user wants the deletion.
func decideMissingOwner(template TemplateState) (Verdict, Reason) {
	switch template {
	case TemplateNotRead:
		return ReadTemplate, NoReason
	case TemplateInUse:
		return Hold, ReasonTemplateInUse
	case TemplateNotServed:
		return Hold, ReasonTemplateNotServed
	default:
		return Hold, ReasonTemplateUnreadable
	}
}
