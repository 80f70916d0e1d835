package capacity

import (
	"fmt"
	"strings"
)

// Unknown is the count of an estimator that does not know the capacity of a cluster, for example
// because it does not serve that cluster.
const Unknown int32 = -1

// Estimate is the response of one estimator for one cluster.
type Estimate struct {
	// Count is how many more replicas or sets fit into the cluster. A negative number means that
	// the count is Unknown. math.MaxInt32 means that the estimator found no limit.
	Count int32
	// Err is the reason why the estimator has no estimate for a cluster that it serves. Users read
	// the text of the error. If Err is set, Count is not used.
	Err error
}

// Failure is the error of an estimator that has no estimate for a cluster.
type Failure struct {
	Estimator string
	Err       error
}

// Limit is the combined result of all estimators for one cluster. The zero value means that no
// estimator responded.
type Limit struct {
	// Count is the smallest count of all estimators. It is valid only if IsKnown returns true.
	Count int32
	// Estimator is the name of the estimator that returned Count. If several estimators returned
	// the same count, it is the first of them. It is empty if no estimator knows the capacity.
	Estimator string
	// Failures are sorted in the order of the calls to Add.
	Failures []Failure
}

// IsKnown reports whether an estimator knows the capacity of the cluster.
func (l *Limit) IsKnown() bool { return l.Estimator != "" }

// Add adds the response of an estimator. estimator is the name of the estimator and must not be
// empty.
func (l *Limit) Add(estimator string, estimate Estimate) {
	switch {
	case estimate.Err != nil:
		l.Failures = append(l.Failures, Failure{Estimator: estimator, Err: estimate.Err})
	case estimate.Count < 0:
	case !l.IsKnown() || estimate.Count < l.Count:
		l.Count, l.Estimator = estimate.Count, estimator
	}
}

// String returns the count with the name of the estimator that returned it, followed by the
// failures.
func (l *Limit) String() string {
	parts := []string{"unknown"}
	if l.IsKnown() {
		parts[0] = fmt.Sprintf("%d (%s)", l.Count, l.Estimator)
	}
	for _, failure := range l.Failures {
		parts = append(parts, fmt.Sprintf("%s: %s", failure.Estimator, failure.Err))
	}
	return strings.Join(parts, "; ")
}

// Counts returns the count of each limit, or Unknown.
func Counts(limits []Limit) []int32 {
	counts := make([]int32, len(limits))
	for i := range limits {
		counts[i] = Unknown
		if limits[i].IsKnown() {
			counts[i] = limits[i].Count
		}
	}
	return counts
}
