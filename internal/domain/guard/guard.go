// Package guard answers "may this Work's objects leave the member?".
//
// The deletion of a Work does not say its reason. The control plane collects what
// explains the deletion: a user deleted the template or changed the placement, or the
// cluster leaves. One deletion without an explanation is a normal decision of a
// scheduler. Half of a cluster at once, or a part of all clusters, is not: those
// deletions wait until a user confirms them. The deletion of a Work that is still wanted
// is a mistake: the Work goes, and its objects stay for the next Work.
//
// Invariants: every verdict is a pure function of its arguments. What is unknown
// explains nothing. More evidence for a deletion never turns Delete into Hold.
package guard

// Owner is what keeps a Work, as far as the control plane knows it.
type Owner int

// What has become of the owner of a Work that is being deleted.
const (
	// Nobody keeps the Work: a user made it and a user deletes it.
	Nobody Owner = iota
	// Wants: the owner still wants these very objects in this cluster.
	Wants
	// Drops: the owner lives on and wants them in this cluster no more.
	Drops
	// Gone: the owner is deleted or is being deleted.
	Gone
)

// Template is what has become of the template of a Work whose owner is gone.
type Template int

// What is known of a template.
const (
	// Unasked: the template was not read yet.
	Unasked Template = iota
	// Unknown: the template could not be read.
	Unknown
	// Unserved: the control plane does not serve the kind of the template, so that a
	// read cannot tell whether the template was deleted.
	Unserved
	// Kept: the template exists, and a policy claims it or a workload needs it.
	Kept
	// Deleted: the template is deleted or is being deleted, or another object has its
	// name.
	Deleted
	// Unclaimed: the template exists, no policy claims it and no workload needs it.
	Unclaimed
)

// Facts are what bears on the deletion of one Work. The zero value is that of a
// Work which a user made.
type Facts struct {
	// ClusterLeaves is true if the cluster is being removed from the control plane.
	ClusterLeaves bool
	Owner         Owner
	// Asked is true if a user changed lately what decides about clusters: the
	// placement, or the request to be scheduled again.
	Asked bool
	// Excluded is true if users keep the workload out of the cluster: the placement
	// leaves it out by name, or a taint or an eviction drives work out of it.
	Excluded bool
	// Unmatched is true if a change of the Cluster may exclude the workload: its labels,
	// provider, region or zones do not match what the placement asks of clusters.
	Unmatched bool
	// Moved is true if the deletion of the Work began while the cluster was out of reach,
	// and its objects run elsewhere. It explains no deletion that was stopped before.
	Moved bool
	// Template counts only when the owner is gone.
	Template Template
	// Held is true if this deletion was stopped before as part of a mass deletion.
	Held bool
	// Confirmed is true if a user wants this deletion.
	Confirmed bool
	// Restored is true if the control plane is restored from a backup and no user has
	// confirmed that.
	Restored bool
	// Decided is true if the verdict for this Work was Delete before, and an agent may
	// be executing it.
	Decided bool
}

// Verdict is the answer to a deletion.
type Verdict int

// Verdicts.
const (
	// Delete the objects, then release the Work.
	Delete Verdict = iota
	// HandOver: release the Work and leave its objects to the next Work.
	HandOver
	// Prove: read the template, then decide again.
	Prove
	// Hold: change nothing until a user confirms, or the deletion is explained.
	Hold
)

// Reason says why a deletion is held. It is empty for the other verdicts.
type Reason int

// Reasons of the verdict Hold.
const (
	// NoReason: the deletion is not held.
	NoReason Reason = iota
	// RestoreUnconfirmed: the control plane is restored from a backup, and no user has
	// confirmed that.
	RestoreUnconfirmed
	// MassDeletion: too much of the cluster would go without an explanation.
	MassDeletion
	// ClusterChanged: the cluster does not match the placements of many workloads since
	// it was changed.
	ClusterChanged
	// FleetDeletion: too much of all clusters together would go without an explanation.
	FleetDeletion
	// TemplateKept: the binding is gone, but its template exists and a policy claims it.
	TemplateKept
	// TemplateUnread: the binding is gone, and the template could not be read.
	TemplateUnread
	// TemplateUnserved: the binding is gone, and the control plane does not serve the
	// kind of its template.
	TemplateUnserved
)

// Decide returns the verdict on the deletion of one Work, and the reason if it is Hold.
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
		return unproven(f.Template)
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

// unproven is the verdict on a Work whose binding is gone while its template is not
// known to be. It does not depend on how many Works are deleted: a binding that is
// missing proves nothing.
func unproven(template Template) (Verdict, Reason) {
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

// Open reports whether nothing explains the deletion so far.
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
