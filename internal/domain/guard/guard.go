// Package guard answers: may the objects of a deleted Work be deleted in the member?
//
// A deleted Work does not contain the reason for its deletion. The control plane collects the
// explanations: a user deleted the template or changed the placement, or the cluster is
// unregistered. A single deletion without an explanation is a normal decision of a scheduler.
// Unexplained deletions of half of a cluster at once, or of a large part of all clusters, are held
// until a user confirms them. If a Work is deleted although its owner still requires it, the
// deletion is a mistake: the Work is released, and its objects stay for the next Work.
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
	// PlacementChanged is true if a user recently changed the placement or requested a reschedule.
	PlacementChanged bool
	// Excluded is true if users exclude the cluster: the placement excludes the cluster by name, or
	// a taint or an eviction removes the workload from the cluster.
	Excluded bool
	// Descheduled is true if the descheduler recently removed all replicas from the cluster.
	Descheduled bool
	// Unmatched is true if a change of the Cluster may be the reason for the deletion, because its
	// labels, provider, region or zones do not match the placement.
	Unmatched bool
	// MovedWhileUnreachable is true if the deletion of the Work began while the cluster was
	// unreachable, and the workload runs in another cluster. It does not explain a deletion that
	// was held before.
	MovedWhileUnreachable bool
	// Template is the state of the template. It is used only if Owner is OwnerGone.
	Template TemplateState
	// WasHeld is true if this deletion was held before as part of a mass deletion.
	WasHeld bool
	// Confirmed is true if a user confirmed this deletion.
	Confirmed bool
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
	// ReasonMassDeletion means that a large part of the cluster would be deleted without an
	// explanation.
	ReasonMassDeletion
	// ReasonClusterChanged means that, because of a change of the Cluster, the cluster no longer
	// matches the placement of many workloads.
	ReasonClusterChanged
	// ReasonFleetDeletion means that a large part of all clusters together would be deleted without
	// an explanation.
	ReasonFleetDeletion
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
func Decide(f Facts, s Bursts, l Limits) (Verdict, Reason) {
	switch {
	case f.RestoreUnconfirmed && (f.ClusterUnregistering || f.Owner != OwnerRequiresWork):
		return Hold, ReasonRestoreUnconfirmed
	case f.ClusterUnregistering:
		return Delete, NoReason
	case f.Owner == OwnerRequiresWork:
		return HandOver, NoReason
	case !IsUnexplained(f), f.Confirmed, f.AlreadyAllowed:
		return Delete, NoReason
	case f.Owner == OwnerGone:
		return decideMissingOwner(f.Template)
	case f.Unmatched && l.ChangedCluster.IsExceeded(s.Cluster):
		return Hold, ReasonClusterChanged
	case l.Cluster.IsExceeded(s.Cluster):
		return Hold, ReasonMassDeletion
	case s.Clusters > 1 && l.Fleet.IsExceeded(s.Fleet):
		return Hold, ReasonFleetDeletion
	case f.WasHeld:
		return Hold, ReasonMassDeletion
	default:
		return Delete, NoReason
	}
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

// IsUnexplained reports whether the deletion has no explanation so far.
func IsUnexplained(f Facts) bool {
	switch {
	case f.ClusterUnregistering:
		return false
	case f.Owner == OwnerDropsWork:
		return !f.PlacementChanged && !f.Excluded && !f.Descheduled && (!f.MovedWhileUnreachable || f.WasHeld)
	case f.Owner == OwnerGone:
		return f.Template != TemplateDeleted && f.Template != TemplateUnclaimed
	default:
		return false
	}
}
