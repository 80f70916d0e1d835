package programs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// ControllerOptions are the options that several controllers of a process share.
type ControllerOptions struct {
	// Selected are the controllers to run, in the format of --controllers.
	Selected []string
	// Backoff is the backoff that the flags configure; see QueueBackoff and MemberBackoff.
	Backoff flags.Backoff
	// Events selects the successful propagation steps that are recorded as events.
	Events loop.EventMode

	flags *pflag.FlagSet
}

// DefaultControllerOptions returns the default options.
func DefaultControllerOptions() ControllerOptions {
	return ControllerOptions{Selected: []string{"*"}, Backoff: flags.DefaultBackoff(), Events: loop.EventModeChanges}
}

// AddFlags adds the flags. limits is added to their help text, and names the queues that limit
// their retries per second.
func (o *ControllerOptions) AddFlags(set *pflag.FlagSet, table ControllerTable, limits string) {
	o.flags = set
	o.Backoff.AddFlags(set, "Unless --rate-limiter-max-delay is given, the maximum is 1m, and 30s for a Work whose cluster is unavailable.",
		limits)
	known, off := table.Names()
	set.StringSliceVar(&o.Selected, "controllers", o.Selected, fmt.Sprintf(
		"Controllers to run. * enables all controllers that are enabled by default, foo enables the controller foo, and -foo disables it.\nAll controllers: %s.\nDisabled by default: %s.",
		strings.Join(known, ", "), strings.Join(off, ", ")))
	flags.AddEventsFlag(set, &o.Events)
}

// Validate returns every mistake.
func (o *ControllerOptions) Validate(table ControllerTable) error {
	known, _ := table.Names()
	return errors.Join(o.Backoff.Validate(), ValidateSelection("controllers", "controller", o.Selected, known))
}

// IneffectiveFlags returns what the user selected although it has no effect in this version, in the
// format of flags: controllers that the table does not implement, ignored flags, and feature gates that
// only such controllers require. AddFlags must have been called.
func (o *ControllerOptions) IneffectiveFlags(table ControllerTable, set *gates.Set) []string {
	var given []string
	for _, controller := range table.unimplemented(o.Selected) {
		given = append(given, "--controllers="+controller)
	}
	given = append(given, flags.GivenWithoutEffect(o.flags)...)
	return append(given, flags.GivenGates(set, table.ineffectiveGates()...)...)
}

// QueueBackoff returns the backoff for retries of an object whose reconciliation failed.
func (o *ControllerOptions) QueueBackoff() loop.Backoff {
	return o.Backoff.ForQueue(loop.DefaultBackoff(), o.flags)
}

// MemberBackoff returns the backoff for retries of a Work that could not be applied to its member.
func (o *ControllerOptions) MemberBackoff() loop.Backoff {
	return o.Backoff.ForQueue(execution.DefaultOptions().Backoff, o.flags)
}
