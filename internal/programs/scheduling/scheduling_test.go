package scheduling

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
)

// parseProgram parses the flags of the program. It returns the options of the program, and the
// options of the component that the program runs.
func parseProgram(t *testing.T, args ...string) (command.Options, *Options) {
	t.Helper()
	set, flags := gates.New(), pflag.NewFlagSet("", pflag.ContinueOnError)
	o := Default(set)
	program := programs.Program(func(*gates.Set) programs.Component { return o.Component() }).New(set)
	program.AddFlags(flags)
	set.AddFlag(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return program, o
}

func parseOptions(t *testing.T, args ...string) *Options {
	t.Helper()
	_, o := parseProgram(t, args...)
	return o
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args    []string
		wantErr string
	}{
		"the defaults are valid":                       {},
		"a scheduler has a name":                       {[]string{"--scheduler-name="}, "--scheduler-name must not be empty"},
		"a port is at most 65535":                      {[]string{"--scheduler-estimator-port=65536"}, "--scheduler-estimator-port 65536"},
		"a port is not negative":                       {[]string{"--scheduler-estimator-port=-1"}, "--scheduler-estimator-port -1"},
		"a port may be 0":                              {[]string{"--scheduler-estimator-port=0"}, ""},
		"a timeout is not negative":                    {[]string{"--scheduler-estimator-timeout=-1s"}, "--scheduler-estimator-timeout -1s"},
		"a timeout may be 0":                           {[]string{"--scheduler-estimator-timeout=0s"}, ""},
		"an unknown plugin is reported":                {[]string{"--plugins=*,-TaintTolerations"}, `--plugins: there is no plugin "-TaintTolerations"; known are APIEnablement`},
		"plugins of a gate are accepted":               {[]string{"--plugins=WorkloadAffinity"}, ""},
		"shared groups of flags are validated":         {[]string{"--leader-elect-resource-name="}, "--leader-elect-resource-name"},
		"health and metrics may have the same address": {[]string{"--metrics-bind-address=:10351"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, _ := parseProgram(t, test.args...)
			err := program.Validate()
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want one that contains %q", err, test.wantErr)
			}
		})
	}
}

func TestFlagsReachTheScheduler(t *testing.T) {
	o := parseOptions(t, "--scheduler-name=mine", "--plugins=*,-ClusterLocality", "--enable-empty-workload-propagation",
		"--feature-gates=PriorityBasedScheduling=false", "--rate-limiter-base-delay=2s", "--rate-limiter-max-delay=3s")
	settings := o.schedulerOptions(o.gates)
	if settings.Name != "mine" || !settings.Features.EmptyWorkload || settings.BaseDelay != 2*time.Second || settings.MaxDelay != 3*time.Second {
		t.Errorf("scheduler %+v", settings)
	}
	if settings.Plugins.Enabled(placement.PluginClusterLocality) || !settings.Plugins.Enabled(placement.PluginTaintToleration) {
		t.Errorf("plugins %q", settings.Plugins)
	}
}

func TestOvercommitProtectionRequiresItsGate(t *testing.T) {
	for gate, want := range map[string]bool{"true": true, "false": false} {
		o := parseOptions(t, "--feature-gates=SchedulingOvercommitProtection="+gate)
		if got := o.schedulerOptions(o.gates).OvercommitProtection; got != want || len(o.ineffectiveFlags()) > 0 {
			t.Errorf("gate %s: protection %t, flags without effect %q", gate, got, o.ineffectiveFlags())
		}
	}
}

func TestPriorityBasedSchedulingHasItsOwnBackoff(t *testing.T) {
	o := parseOptions(t, "--rate-limiter-base-delay=2s", "--rate-limiter-max-delay=3h")
	settings := o.schedulerOptions(o.gates)
	if settings.BaseDelay != time.Second || settings.MaxDelay != 10*time.Second {
		t.Errorf("bindings wait from %s to %s, want 1s to 10s", settings.BaseDelay, settings.MaxDelay)
	}
}

func TestIneffectiveFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"no flags":                               {},
		"flags of estimators require estimators": {[]string{"--scheduler-estimator-port=1", "--disable-scheduler-estimator-in-pull-mode"}, []string{"--disable-scheduler-estimator-in-pull-mode", "--scheduler-estimator-port"}},
		"flags of estimators have an effect with estimators":       {[]string{"--enable-scheduler-estimator", "--scheduler-estimator-port=1", "--disable-scheduler-estimator-in-pull-mode"}, nil},
		"plugins require their gate":                               {[]string{"--plugins=*,WorkloadAntiAffinity"}, []string{"--plugins=WorkloadAntiAffinity"}},
		"plugins have an effect with their gate":                   {[]string{"--plugins=*,WorkloadAntiAffinity", "--feature-gates=WorkloadAffinity=true"}, nil},
		"each binding has its own backoff":                         {[]string{"--rate-limiter-qps=5"}, []string{"--rate-limiter-qps"}},
		"priority-based scheduling has its own backoff":            {[]string{"--rate-limiter-max-delay=5s"}, []string{"--rate-limiter-max-delay"}},
		"the flag has an effect without priority-based scheduling": {[]string{"--rate-limiter-max-delay=5s", "--feature-gates=PriorityBasedScheduling=false"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseOptions(t, test.args...).ineffectiveFlags()); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
