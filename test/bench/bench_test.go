package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestChooseScenariosOrder(t *testing.T) {
	chosen, err := chooseScenarios([]string{"delete", "latency", "update"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range chosen {
		got = append(got, s.name)
	}
	if diff := cmp.Diff([]string{"latency", "update", "delete"}, got); diff != "" {
		t.Errorf("chooseScenarios() (-want +got):\n%s", diff)
	}
	if _, err := chooseScenarios([]string{"latency", "typo"}); err == nil {
		t.Error("an unknown scenario returned no error")
	}
}

func TestOptionsValidate(t *testing.T) {
	requiredFlags := []string{"--karmada-kubeconfig=k", "--members-kubeconfig=m", "--member-contexts=member1"}
	tests := map[string]struct {
		flags []string
		valid bool
	}{
		"only kubeconfigs":                    {nil, true},
		"no templates":                        {[]string{"--templates=0"}, false},
		"both process flags":                  {[]string{"--process=karmada=1", "--processes-file=p"}, false},
		"restart without a command":           {[]string{"--run=restart"}, false},
		"restart with a command":              {[]string{"--run=restart", "--restart-command=true"}, true},
		"no kubeconfig for the control plane": {[]string{"--karmada-kubeconfig="}, false},
		"no members":                          {[]string{"--members-kubeconfig="}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := defaultOptions()
			flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
			o.addFlags(flags)
			if err := flags.Parse(append(requiredFlags, test.flags...)); err != nil {
				t.Fatal(err)
			}
			if err := o.validate(true); (err == nil) != test.valid {
				t.Errorf("validate() = %v, want valid: %t", err, test.valid)
			}
		})
	}
}
