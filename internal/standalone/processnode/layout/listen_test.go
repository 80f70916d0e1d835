package layout

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// podAddress is that of the Pod of these tests.
const podAddress = "127.70.1.2"

func TestAProgramListensAtTheAddressOfItsPod(t *testing.T) {
	// No want means that the arguments are refused.
	tests := map[string]struct{ arguments, want string }{
		"all addresses by a port":          {"--metrics-bind-address=:8080", "--metrics-bind-address=127.70.1.2:8080"},
		"all addresses by name":            {"--bind-address=0.0.0.0", "--bind-address=127.70.1.2"},
		"all addresses of both kinds":      {"--health-probe-bind-address=[::]:10357", "--health-probe-bind-address=127.70.1.2:10357"},
		"all addresses in another form":    {"--metrics-bind-address=[::ffff:0.0.0.0]:80", "--metrics-bind-address=127.70.1.2:80"},
		"a value that stands alone":        {"0.0.0.0:80", "127.70.1.2:80"},
		"a value after its flag":           {"--bind-address 0.0.0.0 --v 4", "--bind-address 127.70.1.2 --v 4"},
		"the address of the Pod":           {"--bind-address=127.70.1.2", "--bind-address=127.70.1.2"},
		"the loopback address":             {"--bind-address=127.0.0.1:80", "--bind-address=127.0.0.1:80"},
		"the loopback address by name":     {"--bind-address=localhost:80", "--bind-address=localhost:80"},
		"the loopback address of IPv6":     {"--bind-address=[::1]:80", "--bind-address=[::1]:80"},
		"nowhere":                          {"--metrics-bind-address=0 --health-probe-bind-address=", "--metrics-bind-address=0 --health-probe-bind-address="},
		"a network is no address":          {"--cidr=0.0.0.0/0", "--cidr=0.0.0.0/0"},
		"a flag without value":             {"--enable", "--enable"},
		"a list of names":                  {"--controllers=*,-x", "--controllers=*,-x"},
		"a value that holds an equals":     {"--set=a=:80", "--set=a=:80"},
		"where to connect":                 {"--cluster-api-endpoint=https://192.0.2.7:6443 --master=192.0.2.7:6443", "--cluster-api-endpoint=https://192.0.2.7:6443 --master=192.0.2.7:6443"},
		"an address of the machine":        {"--profiling-bind-address=192.0.2.7:6060", ""},
		"the same after its flag":          {"--profiling-bind-address 192.0.2.7:6060", ""},
		"the same with underscores":        {"--profiling_bind_address=192.0.2.7:6060", ""},
		"the same after others":            {"--v=4 --enable-pprof --bind-address=192.0.2.7", ""},
		"an IPv6 address of the machine":   {"--bind-address=2001:db8::7", ""},
		"one with an interface":            {"--metrics-bind-address=[fe80::1%eth0]:80", ""},
		"a name of the machine":            {"--metrics-bind-address=machine.example:80", ""},
		"an address that Go does not read": {"--metrics-bind-address=000.000.000.000:80", ""},
		"the address of another Pod":       {"--bind-address=127.70.1.3", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(test.arguments)
			var want error
			if test.want == "" {
				want = ErrElsewhere
			}
			program := Program{Name: "karmada-agent", Path: "/opt/k/karmada-agent-v2"}
			own, err := Resolve(program, &corev1.Container{Command: []string{"/bin/karmada-agent"}, Args: words}, nil, nil, podAddress, "/root")
			if !errors.Is(err, want) || err == nil && want != nil {
				t.Fatalf("arguments of a container: error %v, want %v", err, want)
			}
			if diff := cmp.Diff(strings.Fields(test.want), own.Args); want == nil && diff != "" {
				t.Errorf("arguments of a container (-want +got):\n%s", diff)
			}
			plain, err := Resolve(program, &corev1.Container{}, nil, nil, podAddress, "/root")
			if err != nil {
				t.Fatal(err)
			}
			other, err := plain.Within(append([]string{"karmada-agent"}, words...))
			if !errors.Is(err, want) || err == nil && want != nil {
				t.Fatalf("arguments of kubectl exec: error %v, want %v", err, want)
			}
			if diff := cmp.Diff(strings.Fields(test.want), other.Args); want == nil && diff != "" {
				t.Errorf("arguments of kubectl exec (-want +got):\n%s", diff)
			}
		})
	}
}
