package targetcluster

import (
	"errors"
	"fmt"
	"strings"
)

// MergeErrors returns the errors of the targets. An error of a member contains the name of the
// member. Members with the same error share one line, so that a missing object is not reported
// once for each member. An error of the control plane is returned unchanged.
func MergeErrors(targets []Target, errs []error) []error {
	var merged []error
	isReported := map[string]bool{}
	for i, err := range errs {
		switch {
		case err == nil || isReported[err.Error()]:
		case targets[i].IsMember():
			isReported[err.Error()] = true
			merged = append(merged, fmt.Errorf("cluster(%s): %w", strings.Join(membersWithError(err, targets[i:], errs[i:]), ","), err))
		default:
			merged = append(merged, err)
		}
	}
	return merged
}

// membersWithError returns the names of the members whose errors have the same text.
func membersWithError(wanted error, targets []Target, errs []error) []string {
	var names []string
	for i, err := range errs {
		if targets[i].IsMember() && err != nil && err.Error() == wanted.Error() {
			names = append(names, targets[i].Name())
		}
	}
	return names
}

// JoinErrors returns the merged errors as one error, or nil if there are none.
func JoinErrors(targets []Target, errs []error) error {
	return errors.Join(MergeErrors(targets, errs)...)
}
