package interpreter

import "errors"

// BusyError is the error of a rule that did not run because too many other calls run. It says nothing
// about the rule or the object: the caller tries again later, and changes nothing that it reported.
type BusyError struct{ Text string }

func (b *BusyError) Error() string { return b.Text }

// IsBusy reports whether an error is a BusyError.
func IsBusy(err error) bool {
	var busy *BusyError
	return errors.As(err, &busy)
}
