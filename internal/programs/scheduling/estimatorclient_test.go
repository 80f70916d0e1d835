package scheduling

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/estimators"
)

func parseEstimatorClient(t *testing.T, args ...string) EstimatorClientOptions {
	t.Helper()
	o, set := DefaultEstimatorClientOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidateEstimatorClient(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"the defaults are valid":              {},
		"a port is at most 65535":             {[]string{"--scheduler-estimator-port=65536"}, []string{"--scheduler-estimator-port 65536: must be between 0 and 65535"}},
		"a timeout is not negative":           {[]string{"--scheduler-estimator-timeout=-1s"}, []string{"--scheduler-estimator-timeout -1s: must not be negative"}},
		"a timeout may be 0":                  {[]string{"--scheduler-estimator-timeout=0"}, nil},
		"a namespace has a valid name":        {[]string{"--scheduler-estimator-service-namespace=A"}, []string{`--scheduler-estimator-service-namespace "A": must be the name of a namespace`}},
		"a Service has a valid name":          {[]string{"--scheduler-estimator-service-prefix=-"}, []string{`--scheduler-estimator-service-prefix "-": must be the beginning of the name of a Service`}},
		"a certificate needs its key":         {[]string{"--scheduler-estimator-cert-file=c", "--scheduler-estimator-ca-file=a"}, []string{"--scheduler-estimator-cert-file and --scheduler-estimator-key-file: set both or none"}},
		"a certificate needs TLS":             {[]string{"--scheduler-estimator-cert-file=c", "--scheduler-estimator-key-file=k"}, []string{"--scheduler-estimator-cert-file: a client certificate needs an encrypted connection: set --scheduler-estimator-ca-file"}},
		"a certificate without authorities":   {[]string{"--scheduler-estimator-cert-file=c", "--scheduler-estimator-key-file=k", "--insecure-skip-estimator-verify"}, nil},
		"authorities without own certificate": {[]string{"--scheduler-estimator-ca-file=a"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := parseEstimatorClient(t, test.args...)
			err := o.Validate()
			if (err != nil) != (len(test.want) > 0) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			for _, want := range test.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q", err, want)
				}
			}
		})
	}
}

func TestEstimatorFlags(t *testing.T) {
	args := []string{
		"--scheduler-estimator-timeout=5s", "--scheduler-estimator-service-namespace=n", "--scheduler-estimator-service-prefix=p", "--scheduler-estimator-port=1",
		"--scheduler-estimator-ca-file=a", "--scheduler-estimator-cert-file=c", "--scheduler-estimator-key-file=k", "--insecure-skip-estimator-verify",
	}
	want := EstimatorClientOptions{Timeout: 5 * time.Second, Namespace: "n", Prefix: "p", Port: 1, TLS: estimators.ClientTLS{CAFile: "a", CertFile: "c", KeyFile: "k", SkipVerify: true}}
	got := parseEstimatorClient(t, args...)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(EstimatorClientOptions{})); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if given := got.Given(); len(given) != len(args) {
		t.Errorf("given %q", given)
	}
}

func TestRequestTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: DefaultEstimatorTimeout, time.Second: time.Second} {
		o := EstimatorClientOptions{Timeout: timeout}
		if got := o.RequestTimeout(); got != want {
			t.Errorf("timeout %s: %s, want %s", timeout, got, want)
		}
	}
}
