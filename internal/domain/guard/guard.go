// Package guard answers "may this Work's objects leave the member?".
//
// A Work is deleted for one of many reasons, and nobody says which. So the last
// one who can still stop it asks what explains the deletion: a user who deleted
// the template or changed the placement, a cluster that leaves. One deletion
// without an explanation is the daily business of a scheduler. Half of a cluster
// at once is not, and waits until somebody confirms it. A deletion of what is
// still wanted is a mistake: the Work goes, its objects stay for the next one.
//
// Invariants: everything is a pure function of its arguments; what is not known
// never explains anything; more evidence for a deletion never turns a Delete into
// a Hold.
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
	// Gone: the owner is gone or is going.
	Gone
)

// Template is what has become of the template of a Work whose owner is gone.
type Template int

// What is known of a template.
const (
	// Unasked: nobody has looked yet.
	Unasked Template = iota
	// Unknown: it could not be read.
	Unknown
	// Kept: it is there, and a policy claims it.
	Kept
	// Deleted: it is gone or is going, or another one has its name.
	Deleted
	// Unclaimed: it is there, and no policy claims it any more.
	Unclaimed
)

// Facts are what bears on the deletion of one Work. The zero value is that of a
// Work which a user made.
type Facts struct {
	// ClusterLeaves tells that the cluster is being removed from the control plane.
	ClusterLeaves bool
	Owner         Owner
	// Asked tells that a user changed what decides about clusters lately: the
	// placement, the replicas, or the wish to be scheduled anew.
	Asked bool
	// Excluded reports whether users keep the workload out of the cluster: the
	// placement leaves it out by name, or a taint or an eviction drives work out of it.
	Excluded bool
	// Moved tells that the Work was deleted while the cluster was out of reach, and
	// that its objects run elsewhere.
	Moved bool
	// Template counts only when the owner is gone.
	Template Template
	// Held tells that this deletion was stopped before.
	Held bool
	// Confirmed tells that a user wants this deletion.
	Confirmed bool
}

// Burst is how much of a cluster is being deleted for the same open reason.
type Burst struct {
	// Open is how many Works are being deleted, or were a short while ago, without
	// an explanation so far.
	Open int
	// Works is how many Works the cluster has, those of Open included.
	Works int
}

// Limits say when a burst is a mass deletion.
type Limits struct {
	// Least is how many open deletions are never too many.
	Least int
	// Percent is the part of the cluster's Works that is never too much.
	Percent int
}

// DefaultLimits let a cluster lose 19 Works, or half of them, without asking.
func DefaultLimits() Limits { return Limits{Least: 20, Percent: 50} }

// Exceeded tells whether the burst is a mass deletion.
func (l Limits) Exceeded(b Burst) bool {
	return b.Open >= l.Least && b.Open*100 > b.Works*l.Percent
}

// Verdict is what is to be done about a deletion.
type Verdict int

// Verdicts.
const (
	// Delete the objects, then let the Work go.
	Delete Verdict = iota
	// HandOver: let the Work go and leave its objects to the next one.
	HandOver
	// Prove: look at the template, then ask again.
	Prove
	// Hold: touch nothing until somebody confirms, or the deletion is explained.
	Hold
)

// Decide says what is to be done about the deletion of one Work.
func Decide(f Facts, b Burst, l Limits) Verdict {
	switch {
	case f.ClusterLeaves:
		return Delete
	case f.Owner == Wants:
		return HandOver
	case !Open(f), f.Confirmed:
		return Delete
	case !f.Held && !l.Exceeded(b):
		return Delete
	case f.Owner == Gone && f.Template == Unasked:
		return Prove
	default:
		return Hold
	}
}

// Open tells whether nothing explains the deletion so far.
func Open(f Facts) bool {
	switch {
	case f.ClusterLeaves:
		return false
	case f.Owner == Drops:
		return !f.Asked && !f.Excluded && !f.Moved
	case f.Owner == Gone:
		return f.Template != Deleted && f.Template != Unclaimed
	default:
		return false
	}
}
