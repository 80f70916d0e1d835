package guard

import "time"

// Window is how long a deletion counts towards the limits.
const Window = 5 * time.Minute

// Limits are the numbers of deletions from which deletions are held. They apply to the deletions
// that began within Window.
type Limits struct {
	// ChangedCluster is the number of deletions after a change of a Cluster that is too large for
	// one cluster.
	ChangedCluster int
	// Namespace and Fleet are the deletion budget: how many templates in one namespace, and how many
	// templates in total, may lose their last copy. 0 means no limit.
	Namespace, Fleet int
}

// Counts are the numbers of recent deletions, including the deletion that is decided. A number is 0
// if its limit does not apply to this deletion.
type Counts struct{ ChangedCluster, Namespace, Fleet int }

// DefaultLimits returns the default limits. If a change of a Cluster excludes 20 workloads or more,
// their deletion is held, because a label may be removed by a mistake that has nothing to do with
// workloads. There is no deletion budget by default.
func DefaultLimits() Limits { return Limits{ChangedCluster: 20} }

func (l Limits) isExceeded(c Counts) bool {
	return l.Namespace > 0 && c.Namespace > l.Namespace || l.Fleet > 0 && c.Fleet > l.Fleet
}

// Applicable reports which limits apply to a deletion: the limit for a changed Cluster, or the
// deletion budget. No limit applies to a deletion that a user confirmed, that was allowed before, or
// that deletes no objects.
func (l Limits) Applicable(f Facts) (changedCluster, budget bool) {
	if f.IsConfirmed || f.AlreadyAllowed || f.ClusterUnregistering || f.PreservesObjects {
		return false, false
	}
	return f.isUnmatchedOnly(), (l.Namespace > 0 || l.Fleet > 0) && f.losesLastCopy()
}
