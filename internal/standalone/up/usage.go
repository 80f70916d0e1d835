package up

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError means that a command was called with wrong arguments or flags.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// NewUsageError wraps an error as a usage error.
func NewUsageError(err error) error { return usageError{err} }

// NewCommandUsageError wraps an error as a usage error, and refers to the help of the
// command.
func NewCommandUsageError(cmd *cobra.Command, err error) error {
	return NewUsageError(fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath()))
}

// flagValueKinds describes the values of flags by their type.
var flagValueKinds = map[string]string{"int": "a whole number", "bool": "true or false", "duration": "a duration such as 30s or 5m"}

// NewFlagError converts an error of flag parsing to a usage error that users understand.
func NewFlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if kind, known := flagValueKinds[invalid.GetFlag().Value.Type()]; known {
			err = fmt.Errorf("--%s %s: must be %s", invalid.GetFlag().Name, invalid.GetValue(), kind)
		}
	}
	return NewCommandUsageError(cmd, err)
}

// ExitCode returns the exit code of the program for an error: 2 for usage errors, 1 for all
// others.
func ExitCode(err error) int {
	if wrong := (usageError{}); errors.As(err, &wrong) {
		return 2
	}
	return 1
}
