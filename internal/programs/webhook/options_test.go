package webhook

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/gates"
)

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"the defaults are valid":             {},
		"port 0 is valid":                    {args: []string{"--secure-port=0"}},
		"an address is an IP address":        {args: []string{"--bind-address=localhost"}, want: []string{`--bind-address "localhost"`}},
		"a port must be valid":               {args: []string{"--secure-port=65536"}, want: []string{"--secure-port 65536"}},
		"a TLS version must be known":        {args: []string{"--tls-min-version=1.4"}, want: []string{`--tls-min-version "1.4"`, "1.0, 1.1, 1.2, 1.3"}},
		"a file must be in the directory":    {args: []string{"--tls-cert-file-name=../x", "--tls-private-key-file-name="}, want: []string{"--tls-cert-file-name", "--tls-private-key-file-name"}},
		"all mistakes are reported together": {args: []string{"--bind-address=x", "--health-probe-bind-address=x", "--kube-api-burst=-1"}, want: []string{"--bind-address", "--health-probe-bind-address", "--kube-api-burst"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, set := NewOptions(gates.New()), pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(set)
			if err := set.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if (err != nil) != (len(test.want) > 0) {
				t.Fatalf("mistakes: %v", err)
			}
			for _, text := range test.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is missing in: %v", text, err)
				}
			}
		})
	}
}

func TestReviewerUsesFlagsAndGates(t *testing.T) {
	set := gates.New()
	if err := set.Set("MultiplePodTemplatesScheduling=true"); err != nil {
		t.Fatal(err)
	}
	o := NewOptions(set)
	o.AllowNoExecuteTaints, o.Connection.Master = true, "https://127.0.0.1:1"
	reviewer, err := o.reviewer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rules := reviewer.Rules
	if !rules.AllowNoExecuteTaints || !rules.MultiplePodTemplates || rules.ParseSchedule == nil || reviewer.Customizations == nil {
		t.Errorf("the rules are %+v", rules)
	}
	if !rules.IsGateDisabled("Failover") || rules.IsGateDisabled("MultiplePodTemplatesScheduling") {
		t.Error("the rules do not use the gates")
	}
}
