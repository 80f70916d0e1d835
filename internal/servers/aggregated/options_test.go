package aggregated_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/servers/aggregated"
)

func addFlags(t *testing.T, o *aggregated.Options) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(flags)
	return flags
}

func newOptions(t *testing.T) *aggregated.Options {
	t.Helper()
	o, err := aggregated.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args   []string
		change func(*aggregated.Options)
		want   string
	}{
		"etcd is enough":              {args: []string{"--etcd-servers=unix:///socket"}},
		"etcd is required":            {want: "--etcd-servers must be specified"},
		"a port is required":          {args: []string{"--etcd-servers=x", "--secure-port=0"}, want: "--secure-port must not be 0"},
		"an unknown gate is rejected": {args: []string{"--etcd-servers=x", "--feature-gates=Nonsense=true"}, want: `"Nonsense" is unknown`},
		"a gate of the library is accepted": {
			args: []string{"--etcd-servers=x", "--feature-gates=APIResponseCompression=true,CustomizedClusterResourceModeling=false"},
		},
		"without a Karmada API server authentication must be configured": {
			args: []string{"--etcd-servers=x"},
			change: func(o *aggregated.Options) {
				o.Server.CoreAPI, o.Server.Admission = nil, nil
				o.Server.Features.EnablePriorityAndFairness = false
			},
			want: "Authenticator, Authorizer and Secrets are required",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			if err := addFlags(t, o).Parse(test.args); err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(o)
			}
			var got []string
			for _, err := range o.Validate() {
				got = append(got, err.Error())
			}
			switch {
			case test.want == "" && len(got) > 0:
				t.Errorf("got %q, want no errors", got)
			case test.want != "" && !strings.Contains(strings.Join(got, "\n"), test.want):
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
