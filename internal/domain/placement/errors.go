package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// FitError is returned if no cluster passes the filters. The text of the error is the message of
// the Scheduled condition. A retry does not help before a cluster or the binding changes.
type FitError struct {
	// Total is the number of known clusters, including terminating ones.
	Total int
	// Rejections holds the rejected clusters that the affinity selects. Each cluster is listed
	// under the first reason for which it was rejected.
	Rejections []Rejection
	// Affinity describes the affinity if it selects no cluster.
	Affinity string
	// KeepsPrevious reports whether the Result that is returned with this error holds the previous
	// targets. It is true if only clusters changed, and the user requested nothing new since the
	// last scheduling. Then the previous targets are kept, except those that the affinity no longer
	// selects. It is false if the user requested this placement and no cluster satisfies it. Then
	// the targets are empty.
	KeepsPrevious bool
}

// Error returns the rejected clusters and the reason for each of them.
func (f *FitError) Error() string {
	reason := "no cluster exists"
	switch {
	case len(f.Rejections) > 0:
		reason = listRejections(f.Rejections)
	case f.Affinity != "":
		reason = "no cluster matches the " + f.Affinity
	}
	return fmt.Sprintf("0/%d clusters are available: %s.", f.Total, reason)
}

// UnschedulableError is returned if the selected clusters have capacity for fewer replicas than
// requested. A retry helps once there is more capacity.
type UnschedulableError struct{ message string }

func (u *UnschedulableError) Error() string { return u.message }

// notEnoughError returns an error with the requested number and the capacity of each cluster.
func (t *task) notEnoughError(want int64, noun string, capacities []clusterCapacity) error {
	sum := totalCapacity(capacities)
	return &UnschedulableError{fmt.Sprintf("Clusters available replicas %d are not enough to schedule: %s wanted, room for %d%s%s.",
		sum, countWithNoun(want, noun), sum, describeCapacities(capacities), t.rejectionSuffix())}
}

func (t *task) notEnoughInTiersError(want int64, candidates []candidate) error {
	capacities := availableCapacities(candidates)
	return &UnschedulableError{fmt.Sprintf("Clusters available replicas are not enough to schedule: %s wanted, room for %d%s%s.",
		countWithNoun(want, nounReplica), totalCapacity(capacities), describeCapacities(capacities), t.rejectionSuffix())}
}

// Nouns for the objects that messages count.
const (
	nounReplica     = "replica"
	nounMoreReplica = "more replica"
)

// countWithNoun returns the number followed by the noun, in the plural if the number is not 1.
func countWithNoun(number int64, noun string) string {
	if number != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", number, noun)
}

func availableCapacities(candidates []candidate) []clusterCapacity {
	capacities := make([]clusterCapacity, len(candidates))
	for i := range candidates {
		capacities[i] = clusterCapacity{name: candidates[i].name, replicas: candidates[i].available}
	}
	return capacities
}

func totalCapacity(capacities []clusterCapacity) int64 {
	sum := int64(0)
	for i := range capacities {
		sum = addSaturated(sum, capacities[i].replicas)
	}
	return sum
}

// describeCapacities returns a list of the clusters with their capacities. It returns an empty
// string if there are no clusters.
func describeCapacities(capacities []clusterCapacity) string {
	if len(capacities) == 0 {
		return ""
	}
	sorted := slices.SortedFunc(slices.Values(capacities), func(a, b clusterCapacity) int { return cmp.Compare(a.name, b.name) })
	texts := make([]string, len(sorted))
	for i := range sorted {
		texts[i] = fmt.Sprintf("%s %d", sorted[i].name, sorted[i].replicas)
	}
	return " (" + joinBounded(texts) + ")"
}

// Reason returns the reason of the Scheduled condition for the error that Schedule returned:
// Success for no error, NoClusterFit for a FitError, Unschedulable for an UnschedulableError, and
// SchedulerError for every other error, such as a spread constraint that cannot be met.
func Reason(err error) string {
	var fit *FitError
	var unschedulable *UnschedulableError
	switch {
	case err == nil:
		return workv1alpha2.BindingReasonSuccess
	case errors.As(err, &fit):
		return workv1alpha2.BindingReasonNoClusterFit
	case errors.As(err, &unschedulable):
		return workv1alpha2.BindingReasonUnschedulable
	default:
		return workv1alpha2.BindingReasonSchedulerError
	}
}

// stepError wraps an error with the step in which the error occurred. It returns nil for nil. Users
// read the text of the error in the condition and in events.
func stepError(step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", step, err)
}

// tooFewError returns an error with the number that a spread constraint requires, and with the
// feasible clusters or regions.
func (t *task) tooFewError(cause error, want int, noun string, present []string) error {
	names := ""
	if len(present) > 0 {
		names = " (" + joinBounded(slices.Sorted(slices.Values(present))) + ")"
	}
	return fmt.Errorf("%w: %s wanted, %d feasible%s%s", cause, countWithNoun(int64(want), noun), len(present), names, t.rejectionSuffix())
}
