package interpreter

import "errors"

// BusyError reports that a rule was not called, because too many other calls were running. The caller
// retries later, and does not change what it has reported about the object.
type BusyError struct{ Text string }

func (b *BusyError) Error() string { return b.Text }

// IsBusy reports whether err is or wraps a *BusyError.
func IsBusy(err error) bool {
	var busy *BusyError
	return errors.As(err, &busy)
}
