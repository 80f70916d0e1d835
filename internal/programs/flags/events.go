package flags

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/loop"
)

// AddEventsFlag adds the flag that selects the successful propagation steps that are recorded as
// events.
func AddEventsFlag(set *pflag.FlagSet, mode *loop.EventMode) {
	var names []string
	for _, each := range loop.EventModes() {
		names = append(names, string(each))
	}
	set.Var(&eventMode{mode}, "propagation-events", fmt.Sprintf(
		"Which events are written about propagation, one of %s: %s writes decisions and failures; "+
			"%s also writes the success of each step, once for an object after each change of it.",
		strings.Join(names, ", "), loop.EventModeChanges, loop.EventModeAll))
}

// eventMode is the flag value of an event mode.
type eventMode struct{ mode *loop.EventMode }

func (e *eventMode) String() string {
	if e.mode == nil {
		return ""
	}
	return string(*e.mode)
}

func (e *eventMode) Set(text string) (err error) {
	mode, err := loop.ParseEventMode(text)
	if err == nil {
		*e.mode = mode
	}
	return err
}

func (e *eventMode) Type() string { return "string" }
