package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/registration/enroll"
)

func parseOptions(t *testing.T, args ...string) *Options {
	t.Helper()
	set, flags := gates.New(), pflag.NewFlagSet("", pflag.ContinueOnError)
	o := Default(set)
	o.AddFlags(flags)
	set.AddFlag(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// requiredFlags are the flags that every agent needs.
var requiredFlags = []string{"--cluster-name=east", "--karmada-kubeconfig=karmada.config"}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		args    []string
		wantErr string
	}{
		"name and kubeconfig are enough":                    {},
		"the cluster needs a name":                          {[]string{"--cluster-name="}, "--cluster-name must not be empty"},
		"the name must be valid":                            {[]string{"--cluster-name=East"}, `--cluster-name: cluster name "East"`},
		"some names are reserved":                           {[]string{"--cluster-name=east-impersonator"}, "choose another name"},
		"the kubeconfig is required":                        {[]string{"--karmada-kubeconfig="}, "--karmada-kubeconfig must be"},
		"Secrets need a namespace":                          {[]string{"--cluster-namespace="}, "--cluster-namespace must not be empty"},
		"an unknown controller is reported":                 {[]string{"--controllers=*,binding"}, `--controllers: there is no controller "binding"; known are certRotation`},
		"controllers that are not implemented are accepted": {[]string{"--controllers=*,-serviceExport,endpointsliceCollect"}, ""},
		"an unknown Secret is reported":                     {[]string{"--report-secrets=All"}, `--report-secrets "All": must be KubeCredentials, KubeImpersonator or None`},
		"None excludes other values":                        {[]string{"--report-secrets=None,KubeCredentials"}, "None excludes all other values"},
		"the status period must be positive":                {[]string{"--cluster-status-update-frequency=-1s"}, "--cluster-status-update-frequency -1s: must be positive"},
		"the lease duration must be positive":               {[]string{"--cluster-lease-duration=0s"}, "--cluster-lease-duration 0s: must be positive"},
		"a fraction is less than 1":                         {[]string{"--cluster-lease-renew-interval-fraction=1"}, "--cluster-lease-renew-interval-fraction 1: must be more than 0 and less than 1"},
		"a fraction is more than 0":                         {[]string{"--cert-rotation-remaining-time-threshold=0"}, "--cert-rotation-remaining-time-threshold 0: must be more than 0"},
		"a fraction is a number":                            {[]string{"--cluster-lease-renew-interval-fraction=NaN"}, "--cluster-lease-renew-interval-fraction NaN"},
		"the certificate check interval must be positive":   {[]string{"--cert-rotation-checking-interval=0s"}, "--cert-rotation-checking-interval 0s: must be positive"},
		"the number of workers must be positive":            {[]string{"--concurrent-work-syncs=0"}, "--concurrent-work-syncs 0: must be at least 1"},
		"shared groups of flags are validated":              {[]string{"--leader-elect-lease-duration=1s"}, "--leader-elect-lease-duration 1s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := parseOptions(t, slices.Concat(requiredFlags, test.args)...).Validate()
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want one that contains %q", err, test.wantErr)
			}
		})
	}
}

func TestValidateReturnsAllMistakes(t *testing.T) {
	err := parseOptions(t, "--concurrent-work-syncs=0").Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three mistakes on separate lines: %v", err)
	}
}

// TestFlagsReachTheControllers changes every flag that has an effect and compares the resulting
// settings.
func TestFlagsReachTheControllers(t *testing.T) {
	o := parseOptions(t, slices.Concat(requiredFlags, []string{
		"--cluster-namespace=ns", "--cluster-api-endpoint=https://east:6443", "--proxy-server-address=http://proxy",
		"--cluster-provider=metal", "--cluster-region=north", "--cluster-zones=a,b", "--report-secrets=KubeImpersonator",
		"--concurrent-work-syncs=18", "--rate-limiter-base-delay=1s", "--rate-limiter-max-delay=1h", "--cluster-status-update-frequency=5s",
		"--cluster-failure-threshold=6s", "--cluster-success-threshold=7s", "--cluster-cache-sync-timeout=9s", "--enable-cluster-resource-modeling=false",
		"--controllers=*,certRotation", "--cluster-api-qps=9", "--resync-period=8s", "--cluster-lease-duration=1m", "--cluster-lease-renew-interval-fraction=0.5",
		"--cert-rotation-checking-interval=1h", "--cert-rotation-remaining-time-threshold=0.4", "--karmada-kubeconfig-namespace=agents",
	})...)
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	want := enroll.Enrollment{
		Name: "east", ClusterNamespace: "ns", Endpoint: "https://east:6443", ProxyURL: "http://proxy",
		Provider: "metal", Region: "north", Zones: []string{"a", "b"}, ReportedAccounts: enroll.ReportedAccounts{Impersonator: true},
	}
	cluster, err := o.enrollment()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, cluster); diff != "" {
		t.Errorf("Cluster (-want +got):\n%s", diff)
	}
	host := o.hostOptions()
	status := o.ClusterStatus
	if host.OnlyCluster != "east" || status.Mode != clusterv1alpha1.Pull || o.works().Mode != clusterv1alpha1.Pull {
		t.Errorf("the agent serves %q in mode %s", host.OnlyCluster, status.Mode)
	}
	if host.Election.Name != "karmada-agent-east" || host.Election.Namespace != "karmada-system" || !host.Election.Enabled {
		t.Errorf("election %+v", host.Election)
	}
	delays := []time.Duration{
		o.QueueBackoff().Base, o.QueueBackoff().Max, o.MemberBackoff().Max, status.Period, status.Thresholds.Failure, status.Thresholds.Success, status.InventoryTimeout, host.Resync,
		o.Lease.Duration, o.Lease.Interval(), o.Rotation.Interval,
	}
	wantDelays := []time.Duration{
		time.Second, time.Hour, time.Hour, 5 * time.Second, 6 * time.Second, 7 * time.Second, 9 * time.Second, 8 * time.Second,
		time.Minute, 30 * time.Second, time.Hour,
	}
	if diff := cmp.Diff(wantDelays, delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
	if o.works().Workers != 18 || status.Inventory || o.Rotation.Threshold != 0.4 || o.Rotation.Namespace != "agents" {
		t.Errorf("options %+v", o)
	}
	if diff := cmp.Diff([]string{"*", "certRotation"}, o.Selected); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	if host.MemberThrottle != (member.Throttle{QPS: 9, Burst: 60}) {
		t.Errorf("limit of requests to the cluster: %+v", host.MemberThrottle)
	}
}

func TestIneffectiveFlags(t *testing.T) {
	tests := map[string]struct{ args, want []string }{
		"no flags":                                        {},
		"an agent has one cluster":                        {[]string{"--concurrent-cluster-syncs=7"}, []string{"--concurrent-cluster-syncs"}},
		"each object has its own backoff":                 {[]string{"--rate-limiter-qps=7"}, []string{"--rate-limiter-qps"}},
		"controllers without implementation are reported": {[]string{"--controllers=*,serviceExport"}, []string{"--controllers=serviceExport"}},
		"gates without effect are reported":               {[]string{"--feature-gates=MultiClusterService=true"}, []string{"--feature-gates=MultiClusterService=true"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseOptions(t, slices.Concat(requiredFlags, test.args)...).ineffectiveFlags()); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
