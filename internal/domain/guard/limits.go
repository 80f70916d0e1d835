package guard

// Burst holds the number of unexplained deletions in one or more clusters.
type Burst struct {
	// Unexplained is the number of Works that are being deleted, or were deleted recently, without
	// an explanation.
	Unexplained int
	// Works is the number of all Works, including those in Unexplained.
	Works int
}

// Bursts holds the bursts of the same period.
type Bursts struct {
	// Cluster counts the deletions and Works of the cluster of the deleted Work.
	Cluster Burst
	// Fleet counts the deletions and Works of all clusters with unexplained deletions.
	Fleet Burst
	// Clusters is the number of clusters with unexplained deletions.
	Clusters int
}

// Limit defines the size from which a burst is a mass deletion.
type Limit struct {
	// MinDeletions is the smallest number of unexplained deletions that can be a mass deletion.
	MinDeletions int
	// Percent is the percentage of all Works that may be deleted without being a mass deletion.
	Percent int
}

// Limits holds the limits for one cluster, for one cluster that no longer matches placements
// because of a change of the Cluster, and for all clusters together.
type Limits struct{ Cluster, ChangedCluster, Fleet Limit }

// DefaultLimits returns the default limits. In one cluster, 19 Works or half of all Works,
// whichever is more, may be deleted without a confirmation.
//
// If a change of the Cluster excludes 20 workloads or more, their deletion is always held, because
// a label may be removed by a mistake that has nothing to do with workloads.
//
// In all clusters together, 99 Works may be deleted, or a tenth of the Works of the clusters with
// unexplained deletions. A scheduler moves a few workloads at a time, and a descheduler moves
// workloads within a budget. Neither moves a tenth of many clusters in five minutes. The limit for
// all clusters never holds a deletion in an installation with less than 100 Works.
func DefaultLimits() Limits {
	return Limits{Cluster: Limit{MinDeletions: 20, Percent: 50}, ChangedCluster: Limit{MinDeletions: 20}, Fleet: Limit{MinDeletions: 100, Percent: 10}}
}

// IsExceeded reports whether the burst is a mass deletion.
func (l Limit) IsExceeded(b Burst) bool {
	return b.Unexplained >= l.MinDeletions && b.Unexplained*100 > b.Works*l.Percent
}
