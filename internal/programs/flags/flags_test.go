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

// flagGroup is implemented by each group of flags.
type flagGroup interface{ Validate() error }

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"the defaults are valid":                            {},
		"a QPS of 0 is invalid":                             {args: []string{"--kube-api-qps=0"}, want: []string{"--kube-api-qps 0"}},
		"a negative QPS has no limit":                       {args: []string{"--kube-api-qps=-1", "--kube-api-burst=0"}},
		"a burst of 0 is invalid":                           {args: []string{"--kube-api-burst=0"}, want: []string{"--kube-api-burst 0"}},
		"the lease duration must exceed the renew deadline": {args: []string{"--leader-elect-lease-duration=10s"}, want: []string{"--leader-elect-lease-duration 10s", "renew deadline of 10s"}},
		"the renew deadline must exceed the retry period":   {args: []string{"--leader-elect-renew-deadline=2s"}, want: []string{"--leader-elect-renew-deadline 2s", "retry period of 2s"}},
		"without an election its flags are not validated":   {args: []string{"--leader-elect=false", "--leader-elect-lease-duration=0s"}},
		"a Lease has a namespace":                           {args: []string{"--leader-elect-resource-namespace="}, want: []string{"--leader-elect-resource-namespace must not be empty"}},
		"a Lease has a name":                                {args: []string{"--leader-elect-resource-name="}, want: []string{"--leader-elect-resource-name must not be empty"}},
		"an address needs a port":                           {args: []string{"--health-probe-bind-address=localhost"}, want: []string{`--health-probe-bind-address "localhost"`, "0 to disable it"}},
		"a port must be valid":                              {args: []string{"--metrics-bind-address=:100000"}, want: []string{`--metrics-bind-address ":100000"`}},
		"servers can be disabled":                           {args: []string{"--metrics-bind-address=0", "--health-probe-bind-address="}},
		"a base delay must be positive":                     {args: []string{"--rate-limiter-base-delay=0s"}, want: []string{"--rate-limiter-base-delay 0s"}},
		"a maximum delay must not be below the base delay":  {args: []string{"--rate-limiter-max-delay=1ms"}, want: []string{"--rate-limiter-max-delay 1ms", "base delay of 5ms"}},
		"retry limits must be positive":                     {args: []string{"--rate-limiter-qps=0", "--rate-limiter-bucket-size=0"}, want: []string{"--rate-limiter-qps 0", "--rate-limiter-bucket-size 0"}},
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
			for _, one := range []flagGroup{&connection, &election, &serving, &backoff} {
				if err := one.Validate(); err != nil {
					found = append(found, err.Error())
				}
			}
			text := strings.Join(found, "\n")
			if (text == "") != (len(test.want) == 0) {
				t.Errorf("mistakes %q, want some that contain %q", text, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("mistakes %q do not contain %q", text, want)
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
		wantErr     []string
	}{
		"the flag names a file":                          {args: []string{"--kubeconfig=" + good}, host: "https://karmada:5443", qps: -1},
		"the environment names a file":                   {environment: good, host: "https://karmada:5443", qps: -1},
		"the flag takes precedence":                      {environment: broken, args: []string{"--kubeconfig=" + good}, host: "https://karmada:5443", qps: -1},
		"--master replaces the address":                  {args: []string{"--kubeconfig=" + good, "--master=https://other"}, host: "https://other", qps: -1},
		"--master without a kubeconfig is enough":        {args: []string{"--master=http://plain"}, host: "http://plain", qps: -1},
		"a given rate applies":                           {args: []string{"--kubeconfig=" + good, "--kube-api-qps=7"}, host: "https://karmada:5443", qps: 7, burst: 60},
		"a given rate applies even if it is the default": {args: []string{"--kubeconfig=" + good, "--kube-api-burst=60"}, host: "https://karmada:5443", qps: 40, burst: 60},
		"a missing file is named":                        {args: []string{"--kubeconfig=" + dir + "/none"}, wantErr: []string{"--kubeconfig", dir + "/none", "no such file"}},
		"a broken file is named":                         {args: []string{"--kubeconfig=" + broken}, wantErr: []string{"--kubeconfig", broken}},
		"a missing file of $KUBECONFIG is named":         {environment: dir + "/none", wantErr: []string{"$KUBECONFIG"}},
		"a missing configuration is an error":            {wantErr: []string{"--kubeconfig", "$KUBECONFIG"}},
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
			if (err != nil) != (len(test.wantErr) > 0) {
				t.Fatalf("error %v, want one that contains %q", err, test.wantErr)
			}
			for _, want := range test.wantErr {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not contain %q", err, want)
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

func TestGivenFlags(t *testing.T) {
	set, serving := pflag.NewFlagSet("", pflag.ContinueOnError), flags.DefaultServing(":1")
	serving.AddFlags(set)
	if err := set.Parse([]string{"--metrics-bind-address=:8080"}); err != nil {
		t.Fatal(err)
	}
	got := flags.GivenFlags(set, "health-probe-bind-address", "metrics-bind-address")
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
