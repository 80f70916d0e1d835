package controllermanager

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
)

// parseProgram parses the flags of the program. It returns the options of the program, and the
// options of the component that the program runs.
func parseProgram(t *testing.T, args ...string) (command.Options, *Options) {
	t.Helper()
	set, flags := gates.New(), pflag.NewFlagSet("", pflag.ContinueOnError)
	o := Default(set)
	program := programs.Program(func(*gates.Set) programs.Component { return o.Component() }).New(set)
	program.AddFlags(flags)
	set.AddFlag(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return program, o
}

func parseOptions(t *testing.T, args ...string) *Options {
	t.Helper()
	_, o := parseProgram(t, args...)
	return o
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args    []string
		wantErr string
	}{
		"the defaults are valid":                            {},
		"an unknown controller is reported":                 {[]string{"--controllers=*,bindings"}, `--controllers: there is no controller "bindings"; known are`},
		"controllers that are not implemented are accepted": {[]string{"--controllers=*,-workloadRebalancer,endpointSlice"}, ""},
		"skipped APIs must be valid":                        {[]string{"--skipped-propagating-apis=a/b/c/d"}, "--skipped-propagating-apis: "},
		"namespace expressions must compile":                {[]string{"--skipped-propagating-namespaces=("}, "--skipped-propagating-namespaces: "},
		"the status period must be positive":                {[]string{"--cluster-status-update-frequency=0s"}, "--cluster-status-update-frequency 0s: must be positive"},
		"the monitor period must be positive":               {[]string{"--cluster-monitor-period=0s"}, "--cluster-monitor-period 0s: must be positive"},
		"the monitor grace period must be positive":         {[]string{"--cluster-monitor-grace-period=-1s"}, "--cluster-monitor-grace-period -1s: must be positive"},
		"the startup grace period must be positive":         {[]string{"--cluster-startup-grace-period=0s"}, "--cluster-startup-grace-period 0s: must be positive"},
		"the number of workers must be positive":            {[]string{"--concurrent-work-syncs=0"}, "--concurrent-work-syncs 0: must be at least 1"},
		"the purge mode must be valid":                      {[]string{"--no-execute-taint-eviction-purge-mode=Never"}, "must be Directly or Gracefully"},
		"the eviction rate must not be negative":            {[]string{"--resource-eviction-rate=-1"}, "--resource-eviction-rate -1"},
		"the eviction rate must be a number":                {[]string{"--resource-eviction-rate=NaN"}, "--resource-eviction-rate NaN"},
		"the eviction timeout must not be negative":         {[]string{"--graceful-eviction-timeout=-1s"}, "--graceful-eviction-timeout -1s"},
		"the tolerance must not be negative":                {[]string{"--horizontal-pod-autoscaler-tolerance=-0.1"}, "--horizontal-pod-autoscaler-tolerance -0.1"},
		"shared groups of flags are validated":              {[]string{"--leader-elect-lease-duration=1s"}, "--leader-elect-lease-duration 1s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, _ := parseProgram(t, test.args...)
			err := program.Validate()
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want one that contains %q", err, test.wantErr)
			}
		})
	}
}

func TestValidateReturnsAllMistakes(t *testing.T) {
	program, _ := parseProgram(t, "--controllers=x", "--concurrent-work-syncs=0", "--metrics-bind-address=x")
	err := program.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three mistakes on separate lines: %v", err)
	}
}

// TestFlagsReachTheControllers changes every flag that has an effect and compares the resulting
// settings.
func TestFlagsReachTheControllers(t *testing.T) {
	o := parseOptions(t,
		"--concurrent-cluster-syncs=11", "--concurrent-resource-template-syncs=12", "--concurrent-dependent-resource-syncs=13",
		"--concurrent-propagation-policy-syncs=14", "--concurrent-cluster-propagation-policy-syncs=15",
		"--concurrent-resourcebinding-syncs=16", "--concurrent-clusterresourcebinding-syncs=17", "--concurrent-work-syncs=18",
		"--concurrent-namespace-syncs=2", "--rate-limiter-base-delay=1s", "--rate-limiter-max-delay=1h", "--rate-limiter-qps=3", "--rate-limiter-bucket-size=4",
		"--cluster-status-update-frequency=5s", "--cluster-failure-threshold=6s", "--cluster-success-threshold=7s",
		"--cluster-cache-sync-timeout=21s", "--cluster-monitor-period=22s", "--cluster-monitor-grace-period=23s", "--cluster-startup-grace-period=24s",
		"--enable-taint-manager=false", "--enable-no-execute-taint-eviction", "--no-execute-taint-eviction-purge-mode=Directly", "--resource-eviction-rate=2.5",
		"--graceful-eviction-timeout=25s",
		"--enable-cluster-resource-modeling=false", "--controllers=*,-binding", "--skipped-propagating-apis=a.example.io",
		"--skipped-propagating-namespaces=dev-.*", "--cluster-api-qps=9", "--resync-period=8s",
	)
	host := programs.HostOptions{}
	o.Component().ConfigureHost(&host)
	want := Workers{
		Clusters: 11, Templates: 12, Dependents: 13, Policies: 14, ClusterPolicies: 15, Bindings: 16, ClusterBindings: 17, Works: 18, Namespaces: 2,
	}
	if diff := cmp.Diff(want, o.Workers); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
	if got := o.Workers.NamespaceClusterPairs(); got != 10 {
		t.Errorf("%d pairs of a Namespace and a cluster are reconciled in parallel, want 10", got)
	}
	evictions := Evictions{NoExecute: true, PurgeMode: "Directly", Rate: 2.5, Timeout: 25 * time.Second}
	if diff := cmp.Diff(evictions, o.Evictions); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
	delays := []time.Duration{o.QueueBackoff().Base, o.QueueBackoff().Max, o.MemberBackoff().Max, o.ClusterStatus.Period, o.ClusterStatus.Thresholds.Failure, o.ClusterStatus.Thresholds.Success, host.Resync,
		o.ClusterStatus.InventoryTimeout, o.Monitor.Period, o.Monitor.Grace.Period, o.Monitor.Grace.Startup}
	wantDelays := []time.Duration{time.Second, time.Hour, time.Hour, 5 * time.Second, 6 * time.Second, 7 * time.Second, 8 * time.Second,
		21 * time.Second, 22 * time.Second, 23 * time.Second, 24 * time.Second}
	if diff := cmp.Diff(wantDelays, delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
	if o.Backoff.QPS != 3 || o.Backoff.BucketSize != 4 || o.ClusterStatus.Inventory {
		t.Errorf("retries %d and %d, inventory %t; want 3, 4, false", o.Backoff.QPS, o.Backoff.BucketSize, o.ClusterStatus.Inventory)
	}
	if diff := cmp.Diff([]string{"*", "-binding"}, o.Selected); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	rules, err := o.Propagation.rules()
	if err != nil {
		t.Fatal(err)
	}
	if !rules.APIs.Skips(schema.GroupVersionKind{Group: "a.example.io", Version: "v1", Kind: "A"}) {
		t.Error("a skipped API is not skipped")
	}
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	if !rules.Namespaces.Skips(configMap, "dev-1", "a") || rules.Namespaces.Skips(configMap, "kube-1", "a") {
		t.Error("the skipped namespaces are not those of the flag")
	}
	if host.MemberThrottle != (member.Throttle{QPS: 9, Burst: 60}) {
		t.Errorf("members %+v", host.MemberThrottle)
	}
}

// TestDefaultsMatchTheControllers requires that the defaults of the flags are the defaults of the
// controllers.
func TestDefaultsMatchTheControllers(t *testing.T) {
	o := parseOptions(t)
	if diff := cmp.Diff(DefaultWorkers(), o.Workers); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
	templates, status := detector.DefaultOptions(), clusterstatus.DefaultOptions()
	if o.QueueBackoff() != templates.Backoff || o.MemberBackoff() != execution.DefaultOptions().Backoff {
		t.Errorf("backoff %+v and %+v", o.QueueBackoff(), o.MemberBackoff())
	}
	if o.Backoff.QPS != templates.RetryRate || o.Backoff.BucketSize != templates.RetryBurst {
		t.Errorf("retries %d and %d", o.Backoff.QPS, o.Backoff.BucketSize)
	}
	if diff := cmp.Diff(ClusterStatus(status), o.ClusterStatus); diff != "" {
		t.Errorf("options of clusterstatus (-want +got):\n%s", diff)
	}
	rules, err := o.Propagation.rules()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(templates.Propagated.APIs, rules.APIs) {
		t.Errorf("skipped APIs %+v, want %+v", rules.APIs, templates.Propagated.APIs)
	}
	host := programs.HostOptions{}
	o.Component().ConfigureHost(&host)
	if host.MemberThrottle != (member.Throttle{}) {
		t.Errorf("limit of requests to members: %+v", host.MemberThrottle)
	}
}

func TestShorterBackoffAppliesToMembers(t *testing.T) {
	if got := parseOptions(t, "--rate-limiter-max-delay=10s").MemberBackoff().Max; got != 10*time.Second {
		t.Errorf("maximum backoff of Works is %s", got)
	}
}

func TestIneffectiveFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"no flags": {},
		"flags with their default values are reported": {
			args: []string{"--federated-resource-quota-sync-period=5m", "--horizontal-pod-autoscaler-tolerance=0.1"},
			want: []string{"--horizontal-pod-autoscaler-tolerance", "--federated-resource-quota-sync-period"},
		},
		"taint evictions require their gate": {
			args: []string{"--enable-no-execute-taint-eviction", "--enable-taint-manager"}, want: []string{"--enable-no-execute-taint-eviction"},
		},
		"taint evictions have an effect with their gate": {args: []string{"--enable-no-execute-taint-eviction", "--resource-eviction-rate=1", "--feature-gates=Failover=true"}},
		"controllers without implementation are reported if selected by name": {
			args: []string{"--controllers=*,-binding,serviceImport,endpointSlice"},
			want: []string{"--controllers=endpointSlice", "--controllers=serviceImport"},
		},
		"a retry limit is reported with the priority queue": {
			args: []string{"--rate-limiter-qps=10"}, want: []string{"--rate-limiter-qps"},
		},
		"a retry limit has an effect without the priority queue": {args: []string{"--rate-limiter-qps=10", "--feature-gates=ControllerPriorityQueue=false"}},
		"gates without effect are reported": {
			args: []string{"--feature-gates=MultiClusterService=true,WorkloadAffinity=true"}, want: []string{"--feature-gates=MultiClusterService=true"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseOptions(t, test.args...).ineffectiveFlags()); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
