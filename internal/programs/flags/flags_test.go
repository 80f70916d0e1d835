package flags_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// group is what each group of flags is.
type group interface{ Validate() error }

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args []string
		told []string
	}{
		"the defaults are right":                  {},
		"a rate of nothing would ask nothing":     {args: []string{"--kube-api-qps=0"}, told: []string{"--kube-api-qps 0"}},
		"a negative rate has no limit":            {args: []string{"--kube-api-qps=-1", "--kube-api-burst=0"}},
		"a burst must let something through":      {args: []string{"--kube-api-burst=0"}, told: []string{"--kube-api-burst 0"}},
		"a Lease must outlast the renew deadline": {args: []string{"--leader-elect-lease-duration=10s"}, told: []string{"--leader-elect-lease-duration 10s", "renew deadline of 10s"}},
		"a renewal must be tried more than once":  {args: []string{"--leader-elect-renew-deadline=2s"}, told: []string{"--leader-elect-renew-deadline 2s", "retry period of 2s"}},
		"without an election nothing matters":     {args: []string{"--leader-elect=false", "--leader-elect-lease-duration=0s"}},
		"a Lease has a namespace":                 {args: []string{"--leader-elect-resource-namespace="}, told: []string{"--leader-elect-resource-namespace must not be empty"}},
		"a Lease has a name":                      {args: []string{"--leader-elect-resource-name="}, told: []string{"--leader-elect-resource-name must not be empty"}},
		"an address needs a port":                 {args: []string{"--health-probe-bind-address=localhost"}, told: []string{`--health-probe-bind-address "localhost"`, "0 for none"}},
		"a port must be one":                      {args: []string{"--metrics-bind-address=:100000"}, told: []string{`--metrics-bind-address ":100000"`}},
		"servers can be off":                      {args: []string{"--metrics-bind-address=0", "--health-probe-bind-address="}},
		"a back-off begins somewhere":             {args: []string{"--rate-limiter-base-delay=0s"}, told: []string{"--rate-limiter-base-delay 0s"}},
		"a back-off grows":                        {args: []string{"--rate-limiter-max-delay=1ms"}, told: []string{"--rate-limiter-max-delay 1ms", "base delay of 5ms"}},
		"something must be tried again":           {args: []string{"--rate-limiter-qps=0", "--rate-limiter-bucket-size=0"}, told: []string{"--rate-limiter-qps 0", "--rate-limiter-bucket-size 0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			connection, election := flags.DefaultConnection(), flags.DefaultElection("x")
			serving, backoff := flags.DefaultServing(":1"), flags.DefaultBackoff()
			connection.AddFlags(set)
			election.AddFlags(set)
			election.AddNameFlag(set)
			serving.AddFlags(set)
			backoff.AddFlags(set, "", "")
			if err := set.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, one := range []group{&connection, &election, &serving, &backoff} {
				if err := one.Validate(); err != nil {
					found = append(found, err.Error())
				}
			}
			text := strings.Join(found, "\n")
			if (text == "") != (len(test.told) == 0) {
				t.Errorf("mistakes %q, want some that tell %q", text, test.told)
			}
			for _, told := range test.told {
				if !strings.Contains(text, told) {
					t.Errorf("mistakes %q do not tell %q", text, told)
				}
			}
		})
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://karmada:5443"}}]
users: [{name: me, user: {token: secret}}]
contexts: [{name: it, context: {cluster: here, user: me}}]
current-context: it
`

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	good, broken := filepath.Join(dir, "good"), filepath.Join(dir, "broken")
	for path, text := range map[string]string{good: kubeconfig, broken: "{"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		environment string
		args        []string
		host        string
		qps         float32
		burst       int
		told        []string
	}{
		"the flag names a file":            {args: []string{"--kubeconfig=" + good}, host: "https://karmada:5443", qps: -1},
		"the environment names a file":     {environment: good, host: "https://karmada:5443", qps: -1},
		"the flag wins":                    {environment: broken, args: []string{"--kubeconfig=" + good}, host: "https://karmada:5443", qps: -1},
		"the address can be another one":   {args: []string{"--kubeconfig=" + good, "--master=https://other"}, host: "https://other", qps: -1},
		"an address is enough":             {args: []string{"--master=http://plain"}, host: "http://plain", qps: -1},
		"a rate that was given is kept":    {args: []string{"--kubeconfig=" + good, "--kube-api-qps=7"}, host: "https://karmada:5443", qps: 7, burst: 60},
		"even if it is the default":        {args: []string{"--kubeconfig=" + good, "--kube-api-burst=60"}, host: "https://karmada:5443", qps: 40, burst: 60},
		"a missing file is named":          {args: []string{"--kubeconfig=" + dir + "/none"}, told: []string{"--kubeconfig", dir + "/none", "no such file"}},
		"a broken file is named":           {args: []string{"--kubeconfig=" + broken}, told: []string{"--kubeconfig", broken}},
		"a missing file of $KUBECONFIG is": {environment: dir + "/none", told: []string{"$KUBECONFIG"}},
		"nothing at all is told":           {told: []string{"--kubeconfig", "$KUBECONFIG"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.environment)
			set, connection := pflag.NewFlagSet("", pflag.ContinueOnError), flags.DefaultConnection()
			connection.AddFlags(set)
			connection.AddMasterFlag(set)
			if err := set.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			config, err := connection.Config("karmada-x")
			if (err != nil) != (len(test.told) > 0) {
				t.Fatalf("error %v, want one that tells %q", err, test.told)
			}
			for _, told := range test.told {
				if !strings.Contains(err.Error(), told) {
					t.Errorf("error %v does not tell %q", err, told)
				}
			}
			if err != nil {
				return
			}
			if config.Host != test.host || config.QPS != test.qps || config.Burst != test.burst {
				t.Errorf("host %s, %v requests a second, %d at once; want %s, %v, %d", config.Host, config.QPS, config.Burst, test.host, test.qps, test.burst)
			}
			if !strings.Contains(config.UserAgent, "karmada-x") {
				t.Errorf("the user agent %q does not name the program", config.UserAgent)
			}
		})
	}
}

func TestGiven(t *testing.T) {
	set, serving := pflag.NewFlagSet("", pflag.ContinueOnError), flags.DefaultServing(":1")
	serving.AddFlags(set)
	if err := set.Parse([]string{"--metrics-bind-address=:8080"}); err != nil {
		t.Fatal(err)
	}
	got := flags.Given(set, "health-probe-bind-address", "metrics-bind-address")
	if diff := cmp.Diff([]string{"--metrics-bind-address"}, got); diff != "" {
		t.Errorf("flags given (-want +got):\n%s", diff)
	}
}

func TestGivenGates(t *testing.T) {
	set := gates.New()
	if err := set.Set("Failover=true,GracefulEviction=false,PropagateDeps=true"); err != nil {
		t.Fatal(err)
	}
	got := flags.GivenGates(set, gates.Failover, gates.GracefulEviction, gates.PropagateDeps, gates.MultiClusterService)
	want := []string{"--feature-gates=Failover=true", "--feature-gates=GracefulEviction=false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gates given (-want +got):\n%s", diff)
	}
}
