package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// FitError says that no cluster passed the filters. Its text is the message of
// the Scheduled condition. Retrying is no use before something changes.
type FitError struct {
	// Total is the number of known clusters, those being removed included.
	Total int
	// Reasons counts the clusters by the first reason for which each was
	// rejected.
	Reasons map[string]int
	// KeepsPrevious says what the Result beside this error holds. True: the user
	// has asked for nothing new since the last scheduling, so it is the clusters
	// that lost their fitness, and the previous targets are kept rather than
	// withdrawn. False: the user asked for this placement, nothing satisfies it,
	// and the targets are empty.
	KeepsPrevious bool
}

// Error lists how many clusters were rejected for what.
func (e *FitError) Error() string {
	reasons := make([]string, 0, len(e.Reasons))
	for reason, count := range e.Reasons {
		reasons = append(reasons, fmt.Sprintf("%d %s", count, reason))
	}
	slices.Sort(reasons)
	if len(reasons) == 0 {
		reasons = []string{"no cluster exists"}
	}
	return fmt.Sprintf("0/%d clusters are available: %s.", e.Total, strings.Join(reasons, ", "))
}

// UnschedulableError says that the selected clusters have room for fewer replicas
// than are to be placed. Retrying helps once there is more.
type UnschedulableError struct{ message string }

func (e *UnschedulableError) Error() string { return e.message }

func notEnough(sum int64) error {
	return &UnschedulableError{fmt.Sprintf("Clusters available replicas %d are not enough to schedule.", sum)}
}

func notEnoughInAnyTier() error {
	return &UnschedulableError{"Clusters available replicas are not enough to schedule."}
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
