package programs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/programs/flags"
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
func (s *ControllerOptions) AddFlags(set *pflag.FlagSet, table ControllerTable, limits string) {
	s.flags = set
	s.Backoff.AddFlags(set, "Unless --rate-limiter-max-delay is given, the maximum is 1m, and 30s for a Work whose cluster is unavailable.", limits)
	known, off := table.Names()
	set.StringSliceVar(&s.Selected, "controllers", s.Selected, fmt.Sprintf(
		"Controllers to run: * enables all that are on by default, name enables a controller, -name disables it.\nAll controllers: %s.\nOff by default: %s.",
		strings.Join(known, ", "), strings.Join(off, ", ")))
	flags.AddEventsFlag(set, &s.Events)
}

// Validate returns every mistake.
func (s *ControllerOptions) Validate(table ControllerTable) error {
	known, _ := table.Names()
	return errors.Join(s.Backoff.Validate(), ValidateSelection("controllers", "controller", s.Selected, known))
}

// IneffectiveFlags returns the selected controllers that this version does not implement. The
// result has the format of flags.
func (s *ControllerOptions) IneffectiveFlags(table ControllerTable) []string {
	var given []string
	for _, controller := range table.unimplemented(s.Selected) {
		given = append(given, "--controllers="+controller)
	}
	return given
}

// QueueBackoff returns the backoff for retries of an object whose reconciliation failed.
func (s *ControllerOptions) QueueBackoff() loop.Backoff {
	return s.Backoff.ForQueue(loop.DefaultBackoff(), s.flags)
}

// MemberBackoff returns the backoff for retries of a Work that could not be applied to its member.
func (s *ControllerOptions) MemberBackoff() loop.Backoff {
	return s.Backoff.ForQueue(execution.DefaultOptions().Backoff, s.flags)
}
