package scheduling

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/gates"
)

func parseEstimator(t *testing.T, args ...string) *EstimatorOptions {
	t.Helper()
	o, set := NewEstimatorOptions(gates.New()), pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidateEstimator(t *testing.T) {
	tests := map[string]struct{ args, want []string }{
		"only the name of the cluster is required": {args: []string{"--cluster-name=east"}},
		"no name":                              {want: []string{"--cluster-name is required"}},
		"port 0 is valid":                      {args: []string{"--cluster-name=east", "--server-port=0"}},
		"a port must be valid":                 {args: []string{"--cluster-name=east", "--server-port=65536"}, want: []string{"--server-port 65536"}},
		"the parallelism must not be negative": {args: []string{"--cluster-name=east", "--parallelism=-1"}, want: []string{"--parallelism -1: must be positive"}},
		"a certificate needs a key":            {args: []string{"--cluster-name=east", "--grpc-auth-cert-file=a"}, want: []string{`--grpc-auth-cert-file "a" and --grpc-auth-key-file ""`}},
		"verified clients need TLS":            {args: []string{"--cluster-name=east", "--grpc-client-ca-file=a"}, want: []string{`--grpc-client-ca-file "a": clients can be verified only with TLS`}},
		"clients that are not verified":        {args: []string{"--cluster-name=east", "--grpc-client-ca-file=a", "--insecure-skip-grpc-client-verify"}},
		"all files":                            {args: []string{"--cluster-name=east", "--grpc-client-ca-file=a", "--grpc-auth-cert-file=b", "--grpc-auth-key-file=c"}},
		"all mistakes are reported together":   {args: []string{"--parallelism=-1", "--health-probe-bind-address=x", "--kube-api-burst=-1"}, want: []string{"--cluster-name", "--parallelism", "--health-probe-bind-address", "--kube-api-burst"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := parseEstimator(t, test.args...).Validate()
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

func TestEstimatorHelpNamesTheMember(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	NewEstimatorOptions(gates.New()).AddFlags(set)
	for _, name := range []string{"kubeconfig", "master", "kube-api-qps"} {
		if usage := set.Lookup(name).Usage; !strings.Contains(usage, "the member cluster") || strings.Contains(usage, "the control plane") {
			t.Errorf("help of --%s: %s", name, usage)
		}
	}
}
