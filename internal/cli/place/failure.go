package place

import (
	"errors"
	"fmt"
	"strings"
)

// Failures are the errors of places, each with the name of its member. Members that
// say the same share a line, or an object that is nowhere would be told as often as
// there are members. An error of the control plane stays as it is.
func Failures(places []Place, errs []error) []error {
	var found []error
	told := map[string]bool{}
	for i, err := range errs {
		switch {
		case err == nil || told[err.Error()]:
		case places[i].Member():
			told[err.Error()] = true
			found = append(found, fmt.Errorf("cluster(%s): %w", strings.Join(saying(err, places[i:], errs[i:]), ","), err))
		default:
			found = append(found, err)
		}
	}
	return found
}

// saying are the members that failed with the same words.
func saying(what error, places []Place, errs []error) []string {
	var names []string
	for i, err := range errs {
		if places[i].Member() && err != nil && err.Error() == what.Error() {
			names = append(names, places[i].Name())
		}
	}
	return names
}

// Failure is all of them as one error, nil if there are none.
func Failure(places []Place, errs []error) error { return errors.Join(Failures(places, errs)...) }
