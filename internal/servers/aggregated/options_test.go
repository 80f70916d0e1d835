package aggregated_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/servers/aggregated"
)

// flagDefaults are the flags of the upstream component, except for flags that every component has.
const flagDefaults = `agent-endpoint-allowed-cidrs=[]
audit-log-batch-buffer-size=10000 audit-log-batch-max-size=1 audit-log-batch-max-wait=0s
audit-log-batch-throttle-burst=0 audit-log-batch-throttle-enable=false audit-log-batch-throttle-qps=0
audit-log-compress=false audit-log-format=json audit-log-maxage=366 audit-log-maxbackup=100 audit-log-maxsize=100
audit-log-mode=blocking audit-log-path= audit-log-truncate-enabled=false
audit-log-truncate-max-batch-size=10485760 audit-log-truncate-max-event-size=102400
audit-log-version=audit.k8s.io/v1 audit-policy-file=
audit-webhook-batch-buffer-size=10000 audit-webhook-batch-max-size=400 audit-webhook-batch-max-wait=30s
audit-webhook-batch-throttle-burst=15 audit-webhook-batch-throttle-enable=true audit-webhook-batch-throttle-qps=10
audit-webhook-config-file= audit-webhook-initial-backoff=10s audit-webhook-mode=batch
audit-webhook-truncate-enabled=false audit-webhook-truncate-max-batch-size=10485760
audit-webhook-truncate-max-event-size=102400 audit-webhook-version=audit.k8s.io/v1
authentication-kubeconfig= authentication-skip-lookup=false authentication-token-webhook-cache-ttl=10s
authentication-tolerate-lookup-failure=false authorization-always-allow-paths=[/healthz,/readyz,/livez]
authorization-kubeconfig= authorization-webhook-cache-authorized-ttl=10s
authorization-webhook-cache-unauthorized-ttl=10s bind-address=0.0.0.0
cert-dir=apiserver.local.config/certificates client-ca-file= contention-profiling=false debug-socket-path=
delete-collection-workers=1 disable-http2-serving=false enable-garbage-collector=true
enable-priority-and-fairness=true encryption-provider-config= encryption-provider-config-automatic-reload=false
etcd-cafile= etcd-certfile= etcd-compaction-interval=5m0s etcd-count-metric-poll-period=1m0s
etcd-db-metric-poll-interval=30s etcd-healthcheck-timeout=2s etcd-keyfile= etcd-prefix=/registry
etcd-readycheck-timeout=2s etcd-servers=[] etcd-servers-overrides=[] feature-gates=
http2-max-streams-per-connection=1000 kube-api-burst=60 kube-api-qps=40 kubeconfig=
lease-reuse-duration-seconds=60 permit-address-sharing=false permit-port-sharing=false profiling=true
proxy-requests=2000 proxy-requests-per-cluster=400 proxy-watches=10000 proxy-watches-per-cluster=2000
requestheader-allowed-names=[] requestheader-client-ca-file= requestheader-extra-headers-prefix=[x-remote-extra-]
requestheader-group-headers=[x-remote-group] requestheader-uid-headers=[]
requestheader-username-headers=[x-remote-user] require-cluster-approval=false secure-port=443 storage-backend= storage-media-type=application/json
tls-cert-file= tls-cipher-suites=[] tls-curve-preferences=[] tls-min-version= tls-private-key-file=
tls-sni-cert-key=[] watch-cache=true watch-cache-sizes=[]`

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

func TestFlagsMatchUpstream(t *testing.T) {
	var got []string
	addFlags(t, newOptions(t)).VisitAll(func(f *pflag.Flag) {
		if f.Deprecated == "" {
			got = append(got, f.Name+"="+f.DefValue)
		}
	})
	want := strings.Fields(flagDefaults)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
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
