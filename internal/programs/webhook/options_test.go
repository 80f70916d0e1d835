package webhook

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
)

// ofEveryProgram are flags that the harness adds.
var ofEveryProgram = []string{"enable-pprof", "feature-gates", "profiling-bind-address"}

func TestFlagsAreThoseOfExistingCommandLines(t *testing.T) {
	text, err := os.ReadFile("testdata/flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, rest, _ := strings.Cut(strings.TrimSpace(line), " "); name != "#" {
			want[name] = rest
		}
	}
	all, own, got := command.New(Program()).Flags(), pflag.NewFlagSet("", pflag.ContinueOnError), map[string]string{}
	NewOptions(gates.New()).AddFlags(own)
	describe := func(f *pflag.Flag) { got[f.Name] = strings.TrimSpace(f.Value.Type() + " " + f.DefValue) }
	own.VisitAll(describe)
	for _, name := range ofEveryProgram {
		describe(all.Lookup(name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	for name := range want {
		if all.Lookup(name) == nil {
			t.Errorf("the program has no flag --%s", name)
		}
	}
}

func TestEveryMistakeIsNamed(t *testing.T) {
	tests := map[string]struct {
		args []string
		says []string
	}{
		"the defaults are right":        {},
		"port 0 takes a free one":       {args: []string{"--secure-port=0"}},
		"an address is an IP address":   {args: []string{"--bind-address=localhost"}, says: []string{`--bind-address "localhost"`}},
		"a port is a port":              {args: []string{"--secure-port=65536"}, says: []string{"--secure-port 65536"}},
		"a version of TLS is known":     {args: []string{"--tls-min-version=1.4"}, says: []string{`--tls-min-version "1.4"`, "1.0, 1.1, 1.2, 1.3"}},
		"a file lies in the directory":  {args: []string{"--tls-cert-file-name=../x", "--tls-private-key-file-name="}, says: []string{"--tls-cert-file-name", "--tls-private-key-file-name"}},
		"all mistakes are told at once": {args: []string{"--bind-address=x", "--health-probe-bind-address=x", "--kube-api-burst=-1"}, says: []string{"--bind-address", "--health-probe-bind-address", "--kube-api-burst"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, set := NewOptions(gates.New()), pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(set)
			if err := set.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if (err != nil) != (len(test.says) > 0) {
				t.Fatalf("the mistakes are: %v", err)
			}
			for _, text := range test.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is missing in: %v", text, err)
				}
			}
		})
	}
}

func TestRulesFollowFlagsAndGates(t *testing.T) {
	set := gates.New()
	if err := set.Set("MultiplePodTemplatesScheduling=true"); err != nil {
		t.Fatal(err)
	}
	o := NewOptions(set)
	o.AllowNoExecuteTaints, o.Connection.Master = true, "https://127.0.0.1:1"
	reviewer, err := o.reviewer()
	if err != nil {
		t.Fatal(err)
	}
	rules := reviewer.Rules
	if !rules.AllowNoExecuteTaints || !rules.MultiplePodTemplates || rules.ParseSchedule == nil || reviewer.Customizations == nil {
		t.Errorf("the rules are %+v", rules)
	}
	if !rules.Disabled("Failover") || rules.Disabled("MultiplePodTemplatesScheduling") {
		t.Error("the rules do not know which gates are on")
	}
}
