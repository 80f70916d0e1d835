package scheduling

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
)

// parseDescheduler parses the flags of the program. It returns the options of the program, and the
// options of the component that the program runs.
func parseDescheduler(t *testing.T, args ...string) (command.Options, *DeschedulerOptions) {
	t.Helper()
	set, flags := gates.New(), pflag.NewFlagSet("", pflag.ContinueOnError)
	o := DefaultDeschedulerOptions()
	program := programs.Program(func(*gates.Set) programs.Component { return o.Component() }).New(set)
	program.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return program, o
}

func TestValidateDescheduler(t *testing.T) {
	tests := map[string]struct {
		args    []string
		wantErr string
	}{
		"the defaults are valid":               {},
		"an interval is positive":              {[]string{"--descheduling-interval=0s"}, "--descheduling-interval 0s: must be positive"},
		"a threshold is not negative":          {[]string{"--unschedulable-threshold=-1s"}, "--unschedulable-threshold -1s"},
		"a threshold may be 0":                 {[]string{"--unschedulable-threshold=0s"}, ""},
		"the options of estimators are valid":  {[]string{"--scheduler-estimator-port=65536"}, "--scheduler-estimator-port 65536"},
		"shared groups of flags are validated": {[]string{"--leader-elect-resource-namespace="}, "--leader-elect-resource-namespace"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, _ := parseDescheduler(t, test.args...)
			err := program.Validate()
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want one that contains %q", err, test.wantErr)
			}
		})
	}
}

func TestFlagsReachTheDescheduler(t *testing.T) {
	_, o := parseDescheduler(t, "--descheduling-interval=30s", "--unschedulable-threshold=1m")
	if o.Descheduler.Interval != 30*time.Second || o.Descheduler.UnschedulableThreshold != time.Minute {
		t.Errorf("descheduler %+v", o.Descheduler)
	}
}
