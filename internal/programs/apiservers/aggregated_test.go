package apiservers

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/component-base/metrics/legacyregistry"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
)

func TestAggregatedValidateAppliesFeatureGates(t *testing.T) {
	set := gates.New()
	o, flags := newAggregatedProgram(set), pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse([]string{"--etcd-servers=x", "--feature-gates=CustomizedClusterResourceModeling=false,LoggingAlphaOptions=true"}); err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if set.Enabled(gates.CustomizedClusterResourceModeling) || !set.Enabled("LoggingAlphaOptions") {
		t.Error("the gates do not have the values of the flag")
	}
}

func TestAggregatedClientRateLimitIsOptional(t *testing.T) {
	kubeconfig := kubeconfigFile(t)
	for name, test := range map[string]struct {
		args []string
		want float32
	}{
		"without flags":      {want: -1},
		"with the rate":      {args: []string{"--kube-api-qps=7"}, want: 7},
		"with the burst":     {args: []string{"--kube-api-burst=7"}, want: 40},
		"with neither given": {args: []string{"--secure-port=1"}, want: -1},
	} {
		t.Run(name, func(t *testing.T) {
			o, flags := newAggregatedProgram(gates.New()), pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(append(test.args, "--kubeconfig="+kubeconfig)); err != nil {
				t.Fatal(err)
			}
			if err := o.Connect(); err != nil {
				t.Fatal(err)
			}
			if o.Server.KubeAPIQPS != test.want {
				t.Errorf("the limit is %v, want %v", o.Server.KubeAPIQPS, test.want)
			}
			if o.Server.Karmada.Host != "https://127.0.0.1:1" {
				t.Errorf("authentication uses %s, not the server of --kubeconfig", o.Server.Karmada.Host)
			}
		})
	}
}

func TestAggregatedBuildInfoMetric(t *testing.T) {
	cmd := command.New(programs.Program(NewAggregated))
	cmd.SetArgs([]string{"--etcd-servers=x", "--kubeconfig=" + filepath.Join(t.TempDir(), "missing")})
	if err := cmd.ExecuteContext(t.Context()); err == nil {
		t.Fatal("the program starts without a kube-apiserver")
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "karmada_build_info" {
			return
		}
	}
	t.Error("karmada_build_info is not among the metrics of the server")
}

func TestAggregatedStartErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	kubeconfig, missing := kubeconfigFile(t), filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"without etcd":                      {args: []string{"--kubeconfig=" + kubeconfig}, code: command.WrongUsage, want: "--etcd-servers"},
		"with an unknown gate":              {args: []string{"--etcd-servers=x", "--feature-gates=Nonsense=true"}, code: command.WrongUsage, want: "Nonsense"},
		"without a port":                    {args: []string{"--etcd-servers=x", "--secure-port=0"}, code: command.WrongUsage, want: "--secure-port"},
		"without a kubeconfig":              {args: []string{"--etcd-servers=x"}, code: command.Failure, want: "--kubeconfig"},
		"with a kubeconfig that is missing": {args: []string{"--etcd-servers=x", "--kubeconfig=" + missing}, code: command.Failure, want: missing},
		"with a certificate that is missing": {
			args: []string{"--etcd-servers=x", "--kubeconfig=" + kubeconfig, "--tls-cert-file=" + missing, "--tls-private-key-file=" + missing},
			code: command.Failure, want: missing,
		},
		"while the kube-apiserver is unavailable": {
			args: []string{"--etcd-servers=x", "--kubeconfig=" + kubeconfig, "--cert-dir=" + t.TempDir(), "--bind-address=127.0.0.1", "--secure-port=" + freePort(t)},
			code: command.Failure, want: "delegating authentication",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stderr := command.New(programs.Program(NewAggregated)), &strings.Builder{}
			cmd.SetArgs(append(test.args, "--logtostderr=false", "--log-file="+filepath.Join(t.TempDir(), "log")))
			code := command.Exit(stderr, programs.AggregatedAPIServer, cmd.ExecuteContext(t.Context()))
			if code != test.code || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("exit %d with %s, want %d and %q", code, stderr, test.code, test.want)
			}
		})
	}
}
