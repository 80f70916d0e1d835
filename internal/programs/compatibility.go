package programs

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/flags"
)

// IgnoredFlag is a flag that a program accepts and validates for compatibility with existing command
// lines, but does not read.
type IgnoredFlag struct {
	Name string
	// Default is a bool, int, float64, string or time.Duration, and determines the type of the flag.
	Default any
	// Help describes the flag. The help text of the program adds that the flag has no effect.
	Help string
}

// IgnoredFlags implements Options for flags that a program ignores. The row of a controller that this
// version does not implement has its flags as options. A flag leaves the row when the controller reads
// it.
type IgnoredFlags struct {
	rows  []IgnoredFlag
	flags *pflag.FlagSet
}

// NewIgnoredFlags returns the options for the given flags.
func NewIgnoredFlags(rows ...IgnoredFlag) *IgnoredFlags { return &IgnoredFlags{rows: rows} }

// AddFlags implements Options.
func (i *IgnoredFlags) AddFlags(set *pflag.FlagSet) {
	i.flags = set
	for _, flag := range i.rows {
		help := flag.Help + " Has no effect in this version."
		switch value := flag.Default.(type) {
		case bool:
			set.Bool(flag.Name, value, help)
		case int:
			set.Int(flag.Name, value, help)
		case float64:
			set.Float64(flag.Name, value, help)
		case string:
			set.String(flag.Name, value, help)
		case time.Duration:
			set.Duration(flag.Name, value, help)
		}
		flags.MarkWithoutEffect(set, flag.Name)
	}
}

// Validate implements Options. Before AddFlags is called, there is nothing to validate.
func (i *IgnoredFlags) Validate() error {
	if i.flags == nil {
		return nil
	}
	var errs []error
	for _, flag := range i.rows {
		errs = append(errs, flag.validate(i.flags))
	}
	return errors.Join(errs...)
}

func (i *IgnoredFlag) validate(set *pflag.FlagSet) error {
	switch i.Default.(type) {
	case float64:
		if value, err := set.GetFloat64(i.Name); err != nil || value < 0 {
			return errors.Join(err, fmt.Errorf("--%s %v: must not be negative", i.Name, value))
		}
	case time.Duration:
		value, err := set.GetDuration(i.Name)
		return errors.Join(err, flags.ValidateNotNegative(i.Name, value))
	}
	return nil
}
