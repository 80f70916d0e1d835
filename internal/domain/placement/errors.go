package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// FitError says that no cluster passed the filters. Its text is the message of
// the Scheduled condition. Retrying is no use before something changes.
type FitError struct {
	// Total is the number of known clusters, those being removed included.
	Total int
	// Rejections name the clusters that the affinity selects, each under the first
	// reason for which it was rejected.
	Rejections []Rejection
	// Affinity describes the affinity if it selects none of the clusters.
	Affinity string
	// KeepsPrevious says what the Result beside this error holds. True: the user
	// has asked for nothing new since the last scheduling, so it is the clusters
	// that lost their fitness, and the previous targets are kept rather than
	// withdrawn, but for those that the affinity does not select any longer. False:
	// the user asked for this placement, nothing satisfies it, and the targets are
	// empty.
	KeepsPrevious bool
}

// Error names the rejected clusters with the reason of each.
func (e *FitError) Error() string {
	why := "no cluster exists"
	switch {
	case len(e.Rejections) > 0:
		why = listRejections(e.Rejections)
	case e.Affinity != "":
		why = "no cluster matches the " + e.Affinity
	}
	return fmt.Sprintf("0/%d clusters are available: %s.", e.Total, why)
}

// UnschedulableError says that the selected clusters have room for fewer replicas
// than are wanted. Retrying helps once there is more.
type UnschedulableError struct{ message string }

func (e *UnschedulableError) Error() string { return e.message }

// notEnough says what is wanted, by the noun, and what each cluster has room for.
func (t *task) notEnough(want int64, noun string, rooms []capacity) error {
	sum := roomIn(rooms)
	return &UnschedulableError{fmt.Sprintf("Clusters available replicas %d are not enough to schedule: %s wanted, room for %d%s%s.",
		sum, counted(want, noun), sum, describeRooms(rooms), t.besides())}
}

func (t *task) notEnoughInAnyTier(want int64, candidates []candidate) error {
	rooms := roomsOf(candidates)
	return &UnschedulableError{fmt.Sprintf("Clusters available replicas are not enough to schedule: %s wanted, room for %d%s%s.",
		counted(want, nounReplica), roomIn(rooms), describeRooms(rooms), t.besides())}
}

// Nouns of what a message counts.
const (
	nounReplica     = "replica"
	nounMoreReplica = "more replica"
)

// counted is the number with the noun, which takes an s in the plural.
func counted(number int64, noun string) string {
	if number != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", number, noun)
}

func roomsOf(candidates []candidate) []capacity {
	rooms := make([]capacity, len(candidates))
	for i := range candidates {
		rooms[i] = capacity{name: candidates[i].name, room: candidates[i].available}
	}
	return rooms
}

func roomIn(rooms []capacity) int64 {
	sum := int64(0)
	for i := range rooms {
		sum = addSaturated(sum, rooms[i].room)
	}
	return sum
}

// describeRooms names each cluster with its room; empty without clusters.
func describeRooms(rooms []capacity) string {
	if len(rooms) == 0 {
		return ""
	}
	sorted := slices.SortedFunc(slices.Values(rooms), func(a, b capacity) int { return cmp.Compare(a.name, b.name) })
	texts := make([]string, len(sorted))
	for i := range sorted {
		texts[i] = fmt.Sprintf("%s %d", sorted[i].name, sorted[i].room)
	}
	return " (" + listed(texts) + ")"
}

// Reason is the reason of the Scheduled condition for the outcome of Schedule:
// Success without an error, NoClusterFit for a FitError, Unschedulable for an
// UnschedulableError, SchedulerError for everything else, such as a spread
// constraint that cannot be met.
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

// stepError says in which step an error came up; nil stays nil. The words are part
// of what users read in the condition and in events.
func stepError(step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", step, err)
}

// tooFew says how many of a kind a spread constraint wants and which there are.
func (t *task) tooFew(cause error, want int, noun string, present []string) error {
	names := ""
	if len(present) > 0 {
		names = " (" + listed(slices.Sorted(slices.Values(present))) + ")"
	}
	return fmt.Errorf("%w: %s wanted, %d feasible%s%s", cause, counted(int64(want), noun), len(present), names, t.besides())
}
