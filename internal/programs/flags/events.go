package flags

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/telemetry"
)

// AddEventsFlag adds the flag that selects which successful propagation steps are written as
// events.
func AddEventsFlag(set *pflag.FlagSet, mode *telemetry.Mode) {
	var names []string
	for _, each := range telemetry.Modes() {
		names = append(names, string(each))
	}
	set.Var(&eventMode{mode}, "propagation-events", fmt.Sprintf(
		"Which events are written about propagation, one of %s: %s writes decisions and failures; "+
			"%s also writes the success of each step, once for an object after each change of it.",
		strings.Join(names, ", "), telemetry.ModeChanges, telemetry.ModeAll))
}

// eventMode is the flag value of an event mode.
type eventMode struct{ mode *telemetry.Mode }

func (m *eventMode) String() string {
	if m.mode == nil {
		return ""
	}
	return string(*m.mode)
}

func (m *eventMode) Set(text string) (err error) {
	mode, err := telemetry.ParseMode(text)
	if err == nil {
		*m.mode = mode
	}
	return err
}

func (m *eventMode) Type() string { return "string" }
