package programs

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/gates"
)

// resyncOptions are the options of a component with one flag.
type resyncOptions struct{ period time.Duration }

func (r *resyncOptions) AddFlags(set *pflag.FlagSet) { set.DurationVar(&r.period, "resync", 0, "") }

func (r *resyncOptions) Validate() error { return nil }

func TestFlagsReachTheHost(t *testing.T) {
	options, set := &resyncOptions{}, gates.New()
	p := newProcess(Component{
		Name: "karmada-example", Options: options, ConfigureHost: func(o *HostOptions) { o.Resync = options.period },
	}, set, Process{HealthAddress: ":10351", HasElectionNameFlag: true})
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.AddFlags(flags)
	if got := p.hostOptions(); got.Election.Name != "karmada-example" || !got.Election.Enabled || got.Serving.Health == "" || got.Gates != set {
		t.Errorf("without flags the host has %+v", got)
	}
	if err := flags.Parse([]string{
		"--leader-elect=false", "--leader-elect-resource-name=lease", "--metrics-bind-address=:1", "--health-probe-bind-address=:2", "--resync=8s",
	}); err != nil {
		t.Fatal(err)
	}
	if got := p.hostOptions(); got.Election.Enabled || got.Election.Name != "lease" || got.Serving.Metrics != ":1" || got.Serving.Health != ":2" || got.Resync != 8*time.Second {
		t.Errorf("with flags the host has %+v", got)
	}
	if flags.Lookup("master") != nil {
		t.Error("a program has the flag --master although its row does not ask for it")
	}
}
