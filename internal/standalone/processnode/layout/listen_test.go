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
