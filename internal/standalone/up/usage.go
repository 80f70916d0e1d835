package up

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a mistake in how a command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Wrong marks an error as a mistake in how a command was called.
func Wrong(err error) error { return usageError{err} }

// WrongIn marks an error as a mistake in how a command was called, and tells where to
// read how it is right.
func WrongIn(cmd *cobra.Command, err error) error {
	return Wrong(fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath()))
}

// kindsOf are what flags take, by the types of their values.
var kindsOf = map[string]string{"int": "a whole number", "bool": "true or false", "duration": "a duration such as 30s or 5m"}

// WrongFlag says what is wrong with a flag in the words of a user.
func WrongFlag(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if kind, known := kindsOf[invalid.GetFlag().Value.Type()]; known {
			err = fmt.Errorf("--%s %s: must be %s", invalid.GetFlag().Name, invalid.GetValue(), kind)
		}
	}
	return WrongIn(cmd, err)
}

// ExitCode is what the program ends with after an error: 2 for wrong usage, 1 for
// everything else.
func ExitCode(err error) int {
	if wrong := (usageError{}); errors.As(err, &wrong) {
		return 2
	}
	return 1
}
