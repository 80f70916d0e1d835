package guard

// Burst counts unexplained deletions in one cluster or in several.
type Burst struct {
	// Unexplained is the number of Works that are being deleted, or were deleted recently, without an
	// explanation.
	Unexplained int
	// Works is the number of all Works, including those in Open.
	Works int
}

// Bursts holds the unexplained deletions in the same period.
type Bursts struct {
	// Cluster counts the cluster of the Work.
	Cluster Burst
	// Fleet is the sum over all clusters with unexplained deletions.
	Fleet Burst
	// Clusters is the number of these clusters.
	Clusters int
}

// Limit is the size from which a burst is a mass deletion.
type Limit struct {
	// MinDeletions is the smallest number of unexplained deletions that can be a mass deletion.
	MinDeletions int
	// Percent is the percentage of all Works that may always be deleted.
	Percent int
}

// Limits holds the limits for one cluster, for one cluster whose own change excludes workloads,
// and for all clusters together.
type Limits struct{ Cluster, ChangedCluster, Fleet Limit }

// DefaultLimits allow to delete 19 Works of a cluster, or half of them, without a confirmation.
//
// A change of the Cluster that excludes 20 workloads or more is always held, because a label may
// be removed by a mistake that has nothing to do with workloads.
//
// In all clusters together 99 Works may be deleted, or a tenth of the Works of the clusters with
// unexplained deletions. A scheduler moves a few workloads at a time, and a descheduler does so
// within a budget. Neither reaches a tenth of many clusters in five minutes. The second limit
// never holds a deletion in an installation with less than 100 Works.
func DefaultLimits() Limits {
	return Limits{Cluster: Limit{MinDeletions: 20, Percent: 50}, ChangedCluster: Limit{MinDeletions: 20}, Fleet: Limit{MinDeletions: 100, Percent: 10}}
}

// IsExceeded reports whether the burst is a mass deletion.
func (l Limit) IsExceeded(b Burst) bool {
	return b.Unexplained >= l.MinDeletions && b.Unexplained*100 > b.Works*l.Percent
}
