package apiservers

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/search"
	"karmada.io/karmada/internal/standalone/freeport"
)

func parse(t *testing.T, args ...string) (*Program[*search.Options], *pflag.FlagSet) {
	t.Helper()
	program, flags := newSearchProgram(gates.New()), pflag.NewFlagSet("", pflag.ContinueOnError)
	program.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return program, flags
}

func TestSearchRateLimitsAreOptional(t *testing.T) {
	kubeconfig := kubeconfigFile(t)
	for name, test := range map[string]struct {
		args    []string
		karmada float32
		members member.Throttle
	}{
		"without flags":                   {karmada: -1},
		"with the rate of the control":    {args: []string{"--kube-api-qps=7"}, karmada: 7},
		"with the rate of members":        {args: []string{"--cluster-api-qps=7"}, karmada: -1, members: member.Throttle{QPS: 7, Burst: 60}},
		"with the burst of members alone": {args: []string{"--cluster-api-burst=7"}, karmada: -1, members: member.Throttle{QPS: 40, Burst: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			program, flags := parse(t, append(test.args, "--kubeconfig="+kubeconfig)...)
			if err := program.Connect(); err != nil {
				t.Fatal(err)
			}
			qps, throttle := program.Server.KubeAPIQPS, withOptionalThrottle(program.Server.Settings, flags).MemberThrottle
			if qps != test.karmada || throttle != test.members {
				t.Errorf("the limits are %v and %+v, want %v and %+v", qps, throttle, test.karmada, test.members)
			}
		})
	}
}

func TestSearchFlagsReachTheServer(t *testing.T) {
	program, _ := parse(t, "--etcd-servers=x", "--kubeconfig=x", "--disable-search", "--disable-proxy", "--search-index=memory", "--authorize-callers=false",
		"--storage-initialization-timeout=5s", "--feature-gates=kube:LoggingAlphaOptions=true,kube:Failover=true")
	if err := program.Validate(); err != nil {
		t.Fatal(err)
	}
	want := search.DefaultSettings()
	want.DisableSearch, want.DisableProxy, want.Index, want.AuthorizeCallers = true, true, search.IndexMemory, false
	if diff := cmp.Diff(want, program.Server.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if program.Server.StorageInitializationTimeout.Seconds() != 5 {
		t.Errorf("the timeout is %s, want 5s", program.Server.StorageInitializationTimeout)
	}
}

func TestSearchInProcessOptions(t *testing.T) {
	component := NewSearch(gates.New())
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	component.Options.AddFlags(flags)
	if err := flags.Parse([]string{"--disable-proxy"}); err != nil {
		t.Fatal(err)
	}
	inProcess, ok := component.Options.(*SearchInProcess)
	if !ok {
		t.Fatalf("the options are a %T", component.Options)
	}
	options, err := inProcess.newOptions(programs.ControlPlane{Dir: "/data/karmada-search", EtcdFlags: []string{"--etcd-servers=https://etcd:2379", "--etcd-cafile=ca.crt"}})
	if err != nil {
		t.Fatal(err)
	}
	if !options.DisableProxy || options.IndexDirectory != "/data/karmada-search/index" || options.MemberThrottle != search.NoThrottle() {
		t.Errorf("the settings are %+v", options.Settings)
	}
	if etcd := options.Server.Etcd.StorageConfig.Transport; etcd.ServerList[0] != "https://etcd:2379" || etcd.TrustedCAFile != "ca.crt" {
		t.Errorf("the server connects to etcd with %+v", etcd)
	}
	if options.Lock != nil || options.StorageInitializationTimeout != 0 {
		t.Error("the server of a single process elects a leader or waits for Clusters, which are served later")
	}
}

// kubeconfigFile returns a kubeconfig whose server address has no server.
func kubeconfigFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "karmada.config")
	config := clientcmdapi.NewConfig()
	config.Clusters["karmada"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["karmada"] = &clientcmdapi.Context{Cluster: "karmada"}
	config.CurrentContext = "karmada"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := freeport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

func TestSearchStartErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	kubeconfig := kubeconfigFile(t)
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"without etcd":                  {args: []string{"--kubeconfig=" + kubeconfig}, code: command.WrongUsage, want: "--etcd-servers"},
		"with an unknown gate":          {args: []string{"--etcd-servers=x", "--feature-gates=kube:Nonsense=true"}, code: command.WrongUsage, want: "Nonsense"},
		"with an unknown index":         {args: []string{"--etcd-servers=x", "--search-index=cloud"}, code: command.WrongUsage, want: `--search-index "cloud": must be disk or memory`},
		"with a directory for no index": {args: []string{"--etcd-servers=x", "--search-index=memory", "--search-index-directory=/d"}, code: command.WrongUsage, want: "--search-index-directory /d: has no effect"},
		"without a kubeconfig":          {args: []string{"--etcd-servers=x"}, code: command.Failure, want: "--kubeconfig"},
		"while the kube-apiserver is unavailable": {
			args: []string{"--etcd-servers=x", "--kubeconfig=" + kubeconfig, "--cert-dir=" + t.TempDir(), "--bind-address=127.0.0.1", "--secure-port=" + freePort(t)},
			code: command.Failure, want: "delegating authentication",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stderr := command.New(programs.Program(NewSearch)), &strings.Builder{}
			cmd.SetArgs(append(test.args, "--logtostderr=false", "--log-file="+filepath.Join(t.TempDir(), "log")))
			code := command.Exit(stderr, programs.Search, cmd.ExecuteContext(t.Context()))
			if code != test.code || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("exit %d with %s, want %d and %q", code, stderr, test.code, test.want)
			}
		})
	}
}
