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
		"Events that are recorded about propagation, one of %s. With %s, decisions and failures are recorded. "+
			"With %s, the success of each step is recorded too, once after each change of an object.",
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
