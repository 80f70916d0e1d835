// Package guard answers: may the objects of a deleted Work be deleted in the member?
//
// The deletion of a Work does not contain its reason. The control plane collects the
// explanations: a user deleted the template or changed the placement, or the cluster is
// unregistered. One deletion without an explanation is a normal decision of a scheduler.
// Unexplained deletions of half of a cluster at once, or of a large part of all clusters, are
// held until a user confirms them. The deletion of a Work that is still desired is a mistake:
// the Work is released, and its objects stay for the next Work.
//
// Invariants: every verdict is a pure function of its arguments. An unknown fact explains
// nothing. More evidence for a deletion never turns Delete into Hold.
package guard

// Owner is the state of the owner of a Work, as far as the control plane knows it.
type Owner int

// States of the owner of a Work that is being deleted.
const (
	// Nobody means that the Work has no owner: a user created and deletes it.
	Nobody Owner = iota
	// Wants means that the owner still requires these objects in this cluster.
	Wants
	// Drops means that the owner exists and does not require the objects in this cluster any
	// more.
	Drops
	// Gone means that the owner is deleted or is being deleted.
	Gone
)

// Template is the state of the template of a Work whose owner is gone.
type Template int

// States of a template.
const (
	// Unasked means that the template was not read yet.
	Unasked Template = iota
	// Unknown means that reading the template failed.
	Unknown
	// Unserved means that the control plane does not serve the kind of the template, so a read
	// cannot prove that the template was deleted.
	Unserved
	// Kept means that the template exists, and a policy claims it or a workload depends on it.
	Kept
	// Deleted means that the template is deleted or is being deleted, or that another object has
	// its name.
	Deleted
	// Unclaimed means that the template exists, but no policy claims it and no workload depends
	// on it.
	Unclaimed
)

// Facts are the facts about the deletion of one Work. The zero value describes a Work that a
// user created.
type Facts struct {
	// ClusterLeaves is true if the cluster is being unregistered.
	ClusterLeaves bool
	Owner         Owner
	// Asked is true if a user recently changed the placement or requested a reschedule.
	Asked bool
	// Excluded is true if users exclude the cluster: the placement excludes it by name, or a
	// taint or an eviction removes the workload from it.
	Excluded bool
	// Unmatched is true if a change of the Cluster may exclude it: its labels, provider, region
	// or zones do not match the placement.
	Unmatched bool
	// Moved is true if the deletion of the Work began while the cluster was unreachable, and the
	// workload runs elsewhere. It does not explain a deletion that was held before.
	Moved bool
	// Template is used only if the owner is gone.
	Template Template
	// Held is true if this deletion was held before as part of a mass deletion.
	Held bool
	// Confirmed is true if a user confirmed this deletion.
	Confirmed bool
	// Restored is true if the control plane is restored from a backup and no user confirmed the
	// restore.
	Restored bool
	// Decided is true if the verdict for this Work was Delete before, so an agent may already
	// execute it.
	Decided bool
}

// Verdict is the decision about a deletion.
type Verdict int

// Values of Verdict.
const (
	// Delete deletes the objects and then releases the Work.
	Delete Verdict = iota
	// HandOver releases the Work and leaves its objects to the next Work.
	HandOver
	// Prove requires the caller to read the template and decide again.
	Prove
	// Hold changes nothing until a user confirms the deletion or it is explained.
	Hold
)

// Reason is the reason of the verdict Hold. It is NoReason for the other verdicts.
type Reason int

// Values of Reason.
const (
	// NoReason means that the deletion is not held.
	NoReason Reason = iota
	// RestoreUnconfirmed means that the control plane is restored from a backup, and no user
	// confirmed the restore.
	RestoreUnconfirmed
	// MassDeletion means that a large part of the cluster would be deleted without an
	// explanation.
	MassDeletion
	// ClusterChanged means that a change of the cluster excludes it for many workloads.
	ClusterChanged
	// FleetDeletion means that a large part of all clusters together would be deleted without an
	// explanation.
	FleetDeletion
	// TemplateKept means that the binding is gone, but its template exists and a policy claims
	// it.
	TemplateKept
	// TemplateUnread means that the binding is gone, and reading the template failed.
	TemplateUnread
	// TemplateUnserved means that the binding is gone, and the control plane does not serve the
	// kind of its template.
	TemplateUnserved
)

// Decide returns the verdict on the deletion of one Work, and the reason if the verdict is Hold.
func Decide(f Facts, s Scale, l Limits) (Verdict, Reason) {
	switch {
	case f.Restored && (f.ClusterLeaves || f.Owner != Wants):
		return Hold, RestoreUnconfirmed
	case f.ClusterLeaves:
		return Delete, NoReason
	case f.Owner == Wants:
		return HandOver, NoReason
	case !Open(f), f.Confirmed, f.Decided:
		return Delete, NoReason
	case f.Owner == Gone:
		return decideMissingOwner(f.Template)
	case f.Unmatched && l.Changed.Exceeded(s.Cluster):
		return Hold, ClusterChanged
	case l.Cluster.Exceeded(s.Cluster):
		return Hold, MassDeletion
	case s.Clusters > 1 && l.Fleet.Exceeded(s.Fleet):
		return Hold, FleetDeletion
	case f.Held:
		return Hold, MassDeletion
	default:
		return Delete, NoReason
	}
}

// decideMissingOwner returns the verdict on a Work whose binding is gone, while the template is
// not known to be deleted. The verdict does not depend on the number of deleted Works, because a
// missing binding proves nothing.
func decideMissingOwner(template Template) (Verdict, Reason) {
	switch template {
	case Unasked:
		return Prove, NoReason
	case Kept:
		return Hold, TemplateKept
	case Unserved:
		return Hold, TemplateUnserved
	default:
		return Hold, TemplateUnread
	}
}

// Open reports whether the deletion has no explanation so far.
func Open(f Facts) bool {
	switch {
	case f.ClusterLeaves:
		return false
	case f.Owner == Drops:
		return !f.Asked && !f.Excluded && (!f.Moved || f.Held)
	case f.Owner == Gone:
		return f.Template != Deleted && f.Template != Unclaimed
	default:
		return false
	}
}
