package layout

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// testPodAddress is the address of the Pod in these tests.
const testPodAddress = "127.70.1.2"

func TestProgramListensOnPodAddressOnly(t *testing.T) {
	// If want is empty, the arguments must be rejected.
	tests := map[string]struct{ arguments, want string }{
		"only a port":                     {"--metrics-bind-address=:8080", "--metrics-bind-address=127.70.1.2:8080"},
		"all IPv4 addresses":              {"--bind-address=0.0.0.0", "--bind-address=127.70.1.2"},
		"all IPv6 addresses":              {"--health-probe-bind-address=[::]:10357", "--health-probe-bind-address=127.70.1.2:10357"},
		"all addresses as mapped IPv6":    {"--metrics-bind-address=[::ffff:0.0.0.0]:80", "--metrics-bind-address=127.70.1.2:80"},
		"a value without flag":            {"0.0.0.0:80", "127.70.1.2:80"},
		"a value after its flag":          {"--bind-address 0.0.0.0 --v 4", "--bind-address 127.70.1.2 --v 4"},
		"the address of the Pod":          {"--bind-address=127.70.1.2", "--bind-address=127.70.1.2"},
		"the loopback address":            {"--bind-address=127.0.0.1:80", "--bind-address=127.0.0.1:80"},
		"the loopback address by name":    {"--bind-address=localhost:80", "--bind-address=localhost:80"},
		"the loopback address of IPv6":    {"--bind-address=[::1]:80", "--bind-address=[::1]:80"},
		"a disabled listener":             {"--metrics-bind-address=0 --health-probe-bind-address=", "--metrics-bind-address=0 --health-probe-bind-address="},
		"a network is not an address":     {"--cidr=0.0.0.0/0", "--cidr=0.0.0.0/0"},
		"a flag without value":            {"--enable", "--enable"},
		"a list of names":                 {"--controllers=*,-x", "--controllers=*,-x"},
		"a value with an equals sign":     {"--set=a=:80", "--set=a=:80"},
		"an address to connect to":        {"--cluster-api-endpoint=https://192.0.2.7:6443 --master=192.0.2.7:6443", "--cluster-api-endpoint=https://192.0.2.7:6443 --master=192.0.2.7:6443"},
		"an address of the machine":       {"--profiling-bind-address=192.0.2.7:6060", ""},
		"such an address after its flag":  {"--profiling-bind-address 192.0.2.7:6060", ""},
		"such a flag with underscores":    {"--profiling_bind_address=192.0.2.7:6060", ""},
		"such a flag after others":        {"--v=4 --enable-pprof --bind-address=192.0.2.7", ""},
		"an IPv6 address of the machine":  {"--bind-address=2001:db8::7", ""},
		"an address with an interface":    {"--metrics-bind-address=[fe80::1%eth0]:80", ""},
		"a host name":                     {"--metrics-bind-address=machine.example:80", ""},
		"an address that Go cannot parse": {"--metrics-bind-address=000.000.000.000:80", ""},
		"the address of another Pod":      {"--bind-address=127.70.1.3", ""},
		"a URL with all addresses":        {"--listen-client-urls=https://0.0.0.0:2379", "--listen-client-urls=https://127.70.1.2:2379"},
		"a URL without a host":            {"--listen-peer-urls=https://:2380", "--listen-peer-urls=https://127.70.1.2:2380"},
		"a URL after its flag":            {"--listen-metrics-urls http://0.0.0.0:2381", "--listen-metrics-urls http://127.70.1.2:2381"},
		"a list of URLs":                  {"--listen-client-urls=https://127.0.0.1:2379,https://[::]:2379", "--listen-client-urls=https://127.0.0.1:2379,https://127.70.1.2:2379"},
		"a URL of the machine":            {"--listen-client-urls=https://127.0.0.1:2379,https://192.0.2.7:2379", ""},
		"a URL of a unix socket":          {"--listen-client-urls=unix:///tmp/etcd", ""},
		"a URL that cannot be parsed":     {"--listen-client-urls=https://%zz", ""},
		"a URL to advertise":              {"--advertise-client-urls=https://etcd-0.etcd.ns.svc.cluster.local:2379", "--advertise-client-urls=https://etcd-0.etcd.ns.svc.cluster.local:2379"},
		"an address to advertise":         {"--advertise-address=192.0.2.7", "--advertise-address=192.0.2.7"},
		"an address of kubectl proxy":     {"--address=192.0.2.7", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(test.arguments)
			var want error
			if test.want == "" {
				want = ErrForeignAddress
			}
			program := Program{Name: "karmada-agent", Path: "/opt/k/karmada-agent-v2"}
			command, err := ResolveCommand(program, &corev1.Container{Command: []string{"/bin/karmada-agent"}, Args: words}, nil, nil, testPodAddress, "/root")
			if !errors.Is(err, want) || err == nil && want != nil {
				t.Fatalf("arguments of a container: error %v, want %v", err, want)
			}
			if diff := cmp.Diff(strings.Fields(test.want), command.Args); want == nil && diff != "" {
				t.Errorf("arguments of a container (-want +got):\n%s", diff)
			}
			withoutArguments, err := ResolveCommand(program, &corev1.Container{}, nil, nil, testPodAddress, "/root")
			if err != nil {
				t.Fatal(err)
			}
			execCommand, err := withoutArguments.WithArguments(append([]string{"karmada-agent"}, words...))
			if !errors.Is(err, want) || err == nil && want != nil {
				t.Fatalf("arguments of kubectl exec: error %v, want %v", err, want)
			}
			if diff := cmp.Diff(strings.Fields(test.want), execCommand.Args); want == nil && diff != "" {
				t.Errorf("arguments of kubectl exec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgramsOfOtherProjectsListenOnPodAddress(t *testing.T) {
	const apiServer = "--bind-address=127.70.1.2 --advertise-address=127.70.1.2"
	const skipSource = "--peer-skip-client-san-verification=true"
	tests := map[string]struct {
		program, arguments string
		env                []corev1.EnvVar
		// want is empty if the command must be rejected.
		want, wantEnv string
	}{
		"kube-apiserver without addresses": {program: kubeAPIServer, arguments: "--secure-port=5443", want: apiServer + " --secure-port=5443"},
		"kube-apiserver with all addresses": {
			program: kubeAPIServer, arguments: "--bind-address=0.0.0.0", want: "--advertise-address=127.70.1.2 --bind-address=127.70.1.2",
		},
		"kube-apiserver with both addresses": {
			program: kubeAPIServer, arguments: "--bind-address 0.0.0.0 --advertise_address=127.70.1.2", want: "--bind-address 127.70.1.2 --advertise_address=127.70.1.2",
		},
		"a subcommand":            {program: kubeAPIServer, arguments: "completion bash", want: "completion bash"},
		"karmada-apiserver":       {program: karmadaAPIServer, want: apiServer},
		"kube-controller-manager": {program: kubeControllerManager, want: "--bind-address=127.70.1.2"},
		"a component of Karmada":  {program: "karmada-scheduler", arguments: "--v=4", want: "--v=4"},
		"etcd without addresses": {
			program: etcdServer, arguments: "--name=a",
			want: "--listen-client-urls=http://127.70.1.2:2379 --advertise-client-urls=http://127.70.1.2:2379 --listen-peer-urls=http://127.70.1.2:2380 " + skipSource + " --name=a",
		},
		"etcd with addresses": {
			program: etcdServer, arguments: "--listen-client-urls=https://0.0.0.0:2379 -listen-peer-urls=https://0.0.0.0:2380 --advertise-client-urls=https://etcd-0.etcd:2379",
			want: skipSource + " --listen-client-urls=https://127.70.1.2:2379 -listen-peer-urls=https://127.70.1.2:2380 --advertise-client-urls=https://etcd-0.etcd:2379",
		},
		"etcd with addresses in variables": {
			program: etcdServer, arguments: "--peer-skip-client-san-verification=false",
			env: []corev1.EnvVar{
				{Name: "ETCD_LISTEN_CLIENT_URLS", Value: "http://0.0.0.0:1"}, {Name: "ETCD_LISTEN_PEER_URLS", Value: "http://:2"}, {Name: "ETCD_ADVERTISE_CLIENT_URLS", Value: "http://a:1"},
			},
			want:    "--peer-skip-client-san-verification=false",
			wantEnv: "ETCD_LISTEN_CLIENT_URLS=http://127.70.1.2:1 ETCD_LISTEN_PEER_URLS=http://127.70.1.2:2 ETCD_ADVERTISE_CLIENT_URLS=http://a:1",
		},
		"etcd with an address of the machine in a variable": {program: etcdServer, env: []corev1.EnvVar{{Name: "ETCD_LISTEN_METRICS_URLS", Value: "http://192.0.2.7:1"}}},
		"etcd with a configuration file":                    {program: etcdServer, arguments: "--config-file=/etc/etcd.yaml"},
		"etcd with a configuration file after its flag":     {program: etcdServer, arguments: "-config-file /etc/etcd.yaml"},
		"etcd with a configuration file in a variable":      {program: etcdServer, env: []corev1.EnvVar{{Name: "ETCD_CONFIG_FILE", Value: "/etc/etcd.yaml"}}},
		"etcd as a proxy": {program: etcdServer, arguments: "grpc-proxy start"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			container := &corev1.Container{Args: strings.Fields(test.arguments)}
			command, err := ResolveCommand(Program{Name: test.program}, container, test.env, nil, testPodAddress, "/root")
			if (err == nil) != (test.want != "") {
				t.Fatalf("error %v, want arguments %q", err, test.want)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(strings.Fields(test.want), command.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if got := strings.Join(command.Env, " "); test.wantEnv != "" && got != test.wantEnv {
				t.Errorf("variables %q, want %q", got, test.wantEnv)
			}
		})
	}
}
