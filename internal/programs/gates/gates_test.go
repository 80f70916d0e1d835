package gates

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
)

// TestGatesMatchUpstream compares the names, stages and defaults of the feature gates with those
// of existing command lines.
func TestGatesMatchUpstream(t *testing.T) {
	text, err := os.ReadFile("testdata/gates.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		want[name] = rest
	}
	got := map[string]string{}
	for name, spec := range New().GetAll() {
		stage, value := "Alpha", "false"
		if spec.PreRelease == featuregate.Beta {
			stage = "Beta"
		}
		if spec.Default {
			value = "true"
		}
		got[string(name)] = stage + " " + value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
}

func TestFlag(t *testing.T) {
	tests := map[string]struct {
		args  []string
		on    []featuregate.Feature
		off   []featuregate.Feature
		wrong string
	}{
		"without the flag every gate has its default": {on: []featuregate.Feature{PropagateDeps}, off: []featuregate.Feature{Failover}},
		"named gates are set": {
			args: []string{"--feature-gates=Failover=true,PropagateDeps=false"},
			on:   []featuregate.Feature{Failover}, off: []featuregate.Feature{PropagateDeps},
		},
		"a group switches the gates of its stage that are not named": {
			args: []string{"--feature-gates=AllAlpha=true,WorkloadAffinity=false"},
			on:   []featuregate.Feature{MultiClusterService, "LoggingAlphaOptions"}, off: []featuregate.Feature{WorkloadAffinity, Failover},
		},
		"an unknown gate is rejected": {args: []string{"--feature-gates=Faliover=true"}, wrong: "Faliover"},
		"a value must be a boolean":   {args: []string{"--feature-gates=Failover=perhaps"}, wrong: "perhaps"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, flags := New(), pflag.NewFlagSet("", pflag.ContinueOnError)
			set.AddFlag(flags)
			err := flags.Parse(test.args)
			if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Fatalf("parsing %q: %v, want an error naming %q", test.args, err, test.wrong)
			}
			for _, gate := range test.on {
				if !set.Enabled(gate) {
					t.Errorf("%s is off", gate)
				}
			}
			for _, gate := range test.off {
				if set.Enabled(gate) {
					t.Errorf("%s is on", gate)
				}
			}
		})
	}
}

func TestSetsAreIndependent(t *testing.T) {
	first, second := New(), New()
	if err := first.Set("Failover=true"); err != nil {
		t.Fatal(err)
	}
	if second.Enabled(Failover) {
		t.Error("a gate that was set in one program is set in another")
	}
}

func TestFlagHelpDescribesGates(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	New().AddFlag(flags)
	usage := flags.Lookup("feature-gates").Usage
	for _, gate := range Table() {
		if !strings.Contains(usage, gate.Help) {
			t.Errorf("the help of --feature-gates lacks the description of %s: %s", gate.Name, gate.Help)
		}
	}
	if got := flags.Lookup("feature-gates").DefValue; got != "" {
		t.Errorf("the default is shown as %q, want nothing", got)
	}
}

func TestGivenRestoresTheSet(t *testing.T) {
	for _, given := range []string{"", "Failover=true,PropagateDeps=false", "AllAlpha=true,WorkloadAffinity=false"} {
		first, second := New(), New()
		if err := first.Set(given); err != nil {
			t.Fatal(err)
		}
		if err := second.Set(first.Given()); err != nil {
			t.Fatalf("%q is rejected: %v", first.Given(), err)
		}
		for name := range first.GetAll() {
			if first.Enabled(name) != second.Enabled(name) {
				t.Errorf("given %q, %s is %t in the first set only", given, name, first.Enabled(name))
			}
		}
	}
	if got := (*Set)(nil).Given(); got != "" {
		t.Errorf("Given of a nil set is %q", got)
	}
}
