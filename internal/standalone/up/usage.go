package up

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError means that a command was called with invalid arguments or flags.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// NewUsageError marks err as a usage error.
func NewUsageError(err error) error { return usageError{err} }

// NewCommandUsageError marks err as a usage error, and adds a reference to the command's help.
func NewCommandUsageError(cmd *cobra.Command, err error) error {
	return NewUsageError(fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath()))
}

// flagValueKinds describes the valid values of a flag, by the flag's type.
var flagValueKinds = map[string]string{"int": "a whole number", "bool": "true or false", "duration": "a duration such as 30s or 5m"}

// NewFlagError converts an error in parsing flags to a usage error that users understand.
func NewFlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if kind, known := flagValueKinds[invalid.GetFlag().Value.Type()]; known {
			err = fmt.Errorf("--%s %s: must be %s", invalid.GetFlag().Name, invalid.GetValue(), kind)
		}
	}
	return NewCommandUsageError(cmd, err)
}

// ExitCode returns the program's exit code for err: 2 for usage errors, and 1 for all other errors.
func ExitCode(err error) int {
	if wrong := (usageError{}); errors.As(err, &wrong) {
		return 2
	}
	return 1
}
