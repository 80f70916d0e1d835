package up

import "errors"

// usageError is a mistake in how a command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Wrong marks an error as a mistake in how a command was called.
func Wrong(err error) error { return usageError{err} }

// ExitCode is what the program ends with after an error: 2 for wrong usage, 1 for
// everything else.
func ExitCode(err error) int {
	if wrong := (usageError{}); errors.As(err, &wrong) {
		return 2
	}
	return 1
}
