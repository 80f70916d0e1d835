package scheduling

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/programs/gates"
)

func parsed(t *testing.T, args ...string) *Options {
	t.Helper()
	set, flags := gates.New(), pflag.NewFlagSet("", pflag.ContinueOnError)
	o := Default(set)
	o.AddFlags(flags)
	set.AddFlag(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args []string
		told string
	}{
		"the defaults are right":          {},
		"a scheduler has a name":          {[]string{"--scheduler-name="}, "--scheduler-name must not be empty"},
		"a port is at most 65535":         {[]string{"--scheduler-estimator-port=65536"}, "--scheduler-estimator-port 65536"},
		"a port is not negative":          {[]string{"--scheduler-estimator-port=-1"}, "--scheduler-estimator-port -1"},
		"a port of 0 is one":              {[]string{"--scheduler-estimator-port=0"}, ""},
		"a time is not negative":          {[]string{"--scheduler-estimator-timeout=-1s"}, "--scheduler-estimator-timeout -1s"},
		"no time is one":                  {[]string{"--scheduler-estimator-timeout=0s"}, ""},
		"an unknown plugin is told":       {[]string{"--plugins=*,-TaintTolerations"}, `--plugins: there is no plugin "-TaintTolerations"; known are APIEnablement`},
		"plugins of a gate are known":     {[]string{"--plugins=WorkloadAffinity"}, ""},
		"mistakes in groups are found":    {[]string{"--leader-elect-resource-name="}, "--leader-elect-resource-name"},
		"one address for both is allowed": {[]string{"--metrics-bind-address=:10351"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := parsed(t, test.args...).Validate()
			if (err != nil) != (test.told != "") || err != nil && !strings.Contains(err.Error(), test.told) {
				t.Errorf("error %v, want one that tells %q", err, test.told)
			}
		})
	}
}

func TestFlagsReachTheScheduler(t *testing.T) {
	host := parsed(t, "--scheduler-name=mine", "--plugins=*,-ClusterLocality", "--enable-empty-workload-propagation",
		"--feature-gates=PriorityBasedScheduling=false", "--rate-limiter-base-delay=2s", "--rate-limiter-max-delay=3s",
		"--leader-elect-resource-name=lease", "--health-probe-bind-address=0").Host()
	of := host.Settings.Scheduler
	if of.Name != "mine" || !of.Features.EmptyWorkload || of.BaseDelay != 2*time.Second || of.MaxDelay != 3*time.Second {
		t.Errorf("scheduler %+v", of)
	}
	if of.Plugins.Enabled(placement.PluginClusterLocality) || !of.Plugins.Enabled(placement.PluginTaintToleration) {
		t.Errorf("plugins %q", of.Plugins)
	}
	if host.Election.Name != "lease" || host.Serving.Health != "0" {
		t.Errorf("election %+v, serving %+v", host.Election, host.Serving)
	}
}

func TestPrioritiesHaveABackoffOfTheirOwn(t *testing.T) {
	of := parsed(t, "--rate-limiter-base-delay=2s", "--rate-limiter-max-delay=3h").Host().Settings.Scheduler
	if of.BaseDelay != time.Second || of.MaxDelay != 10*time.Second {
		t.Errorf("bindings wait from %s to %s, want 1s to 10s", of.BaseDelay, of.MaxDelay)
	}
}

func TestFlagsWithoutEffectAreTold(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"nothing was given":                       {},
		"estimators are not asked":                {[]string{"--enable-scheduler-estimator"}, []string{"--enable-scheduler-estimator"}},
		"plugins need their gate":                 {[]string{"--plugins=*,WorkloadAntiAffinity"}, []string{"--plugins=WorkloadAntiAffinity"}},
		"and have it":                             {[]string{"--plugins=*,WorkloadAntiAffinity", "--feature-gates=WorkloadAffinity=true"}, nil},
		"each binding waits for itself":           {[]string{"--rate-limiter-qps=5"}, []string{"--rate-limiter-qps"}},
		"priorities have a back-off of their own": {[]string{"--rate-limiter-max-delay=5s"}, []string{"--rate-limiter-max-delay"}},
		"without priorities the flag has effect":  {[]string{"--rate-limiter-max-delay=5s", "--feature-gates=PriorityBasedScheduling=false"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parsed(t, test.args...).ineffective()); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
