package agentaddress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/domain/agent"
)

// newTestGuard returns a guard with the given flags whose machine has the address 192.0.2.8.
func newTestGuard(t *testing.T, karmadaHost string, flags ...string) *Guard {
	t.Helper()
	var options Options
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(set)
	if err := set.Parse(flags); err != nil {
		t.Fatal(err)
	}
	guard := NewGuard(options, karmadaHost)
	guard.interfaces = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.IPv4(192, 0, 2, 8), Mask: net.CIDRMask(24, 32)}}, nil
	}
	guard.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "karmada.example" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("10.96.0.7")}, nil
	}
	return guard
}

func TestRulesForConnections(t *testing.T) {
	loopback := "--agent-endpoint-allowed-cidrs=127.0.0.0/8,::1/128"
	tests := map[string]struct {
		host, flag, address string
		want                string
	}{
		"an address of a member":                   {host: "https://karmada.example:5443", address: "10.0.0.1:6443"},
		"a loopback address":                       {address: "127.0.0.1:6443", want: "loopback"},
		"a loopback address behind NAT64":          {address: "[64:ff9b::7f00:1]:6443", want: "loopback"},
		"a link-local address behind 6to4":         {address: "[2002:a9fe:a9fe::]:443", want: "link-local"},
		"the server itself behind NAT64":           {host: "karmada.example:5443", flag: "--agent-endpoint-allowed-cidrs=10.0.0.0/8", address: "[64:ff9b::10.96.0.7]:5443", want: "API server of the control plane itself"},
		"an allowed loopback address":              {flag: loopback, address: "127.0.0.1:6443"},
		"an allowed IPv6 address":                  {flag: loopback, address: "[::1]:6443"},
		"an address of this machine":               {address: "192.0.2.8:10250", want: "an address of the control plane"},
		"the resolved address of the server":       {host: "https://karmada.example", address: "10.96.0.7:2379", want: "an address of the control plane"},
		"the server itself":                        {host: "karmada.example:5443", flag: "--agent-endpoint-allowed-cidrs=10.0.0.0/8", address: "10.96.0.7:5443", want: "API server of the control plane itself"},
		"another port of an allowed host":          {host: "karmada.example:5443", flag: "--agent-endpoint-allowed-cidrs=10.0.0.0/8", address: "10.96.0.7:6443"},
		"the server itself, without a DNS name":    {host: "https://127.0.0.1:5443", flag: loopback, address: "127.0.0.1:5443", want: "API server of the control plane itself"},
		"an unknown address of the control plane":  {host: "https://unknown.example", address: "10.0.0.1:6443", want: "resolving the host of the control plane"},
		"the default port of the server's address": {host: "https://karmada.example", flag: "--agent-endpoint-allowed-cidrs=10.0.0.0/8", address: "10.96.0.7:443", want: "API server of the control plane itself"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var flags []string
			if test.flag != "" {
				flags = []string{test.flag}
			}
			rules, err := newTestGuard(t, test.host, flags...).rules(t.Context())
			if err == nil {
				err = rules.Check(netip.MustParseAddrPort(test.address))
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestOwnHostStaysKnownDuringDNSFailure(t *testing.T) {
	guard, now := newTestGuard(t, "https://karmada.example"), time.Unix(0, 0)
	guard.now = func() time.Time { return now }
	if _, err := guard.rules(t.Context()); err != nil {
		t.Fatal(err)
	}
	guard.lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no DNS") }
	now = now.Add(time.Hour)
	rules, err := guard.rules(t.Context())
	if err != nil || rules.Check(netip.MustParseAddrPort("10.96.0.7:1")) == nil {
		t.Errorf("got %v, %v, want the previous address to be rejected", rules, err)
	}
}

// TestDialerChecksResolvedAddress dials a name, so only the resolved address can be rejected.
func TestDialerChecksResolvedAddress(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	dial := newTestGuard(t, "").Dialer(net.Dialer{}, "east", "spec.apiEndpoint")
	var forbidden *agent.AddressError
	if _, err := dial(t.Context(), "tcp", net.JoinHostPort("localhost", port)); !errors.As(err, &forbidden) || forbidden.Cluster != "east" {
		t.Errorf("got %v, want an AddressError", err)
	}
	dial = newTestGuard(t, "", "--agent-endpoint-allowed-cidrs=127.0.0.0/8").Dialer(net.Dialer{}, "east", "spec.apiEndpoint")
	connection, err := dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.Close()
}
