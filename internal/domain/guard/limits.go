package guard

// Burst is how much of a cluster, or of several, is deleted without an explanation.
type Burst struct {
	// Open is how many Works are being deleted, or were a short while ago, without
	// an explanation so far.
	Open int
	// Works is how many Works there are, those of Open included.
	Works int
}

// Scale is what is deleted without an explanation in the same time.
type Scale struct {
	// Cluster is the burst in the cluster of the Work.
	Cluster Burst
	// Fleet is the sum over all clusters that lose Works.
	Fleet Burst
	// Clusters is how many clusters these are.
	Clusters int
}

// Limit says when a burst is a mass deletion.
type Limit struct {
	// Least is the number of open deletions below which a burst is never too large.
	Least int
	// Percent is the part of all Works that is never too large.
	Percent int
}

// Limits are those of one cluster, of one cluster whose own change excludes workloads, and
// of all clusters together.
type Limits struct{ Cluster, Changed, Fleet Limit }

// DefaultLimits let a cluster lose 19 Works, or half of them, without a confirmation.
//
// A change of the Cluster that excludes 20 workloads or more is held, however many there
// are: a label may be dropped by a mistake that has nothing to do with workloads.
//
// All clusters together lose 99 Works, or a tenth of what those clusters have that lose
// any. A scheduler moves a few workloads at a time, and a descheduler does so within a
// budget; neither reaches a tenth of many clusters in five minutes. An installation with
// less than 100 Works is never held by the second limit.
func DefaultLimits() Limits {
	return Limits{Cluster: Limit{Least: 20, Percent: 50}, Changed: Limit{Least: 20}, Fleet: Limit{Least: 100, Percent: 10}}
}

// Exceeded reports whether the burst is a mass deletion.
func (l Limit) Exceeded(b Burst) bool {
	return b.Open >= l.Least && b.Open*100 > b.Works*l.Percent
}
