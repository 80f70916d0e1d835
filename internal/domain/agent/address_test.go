package agent_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

func addressRules() agent.AddressRules {
	return agent.AddressRules{
		OwnHost:      "karmada-apiserver.karmada-system.svc",
		OwnEndpoints: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:5443")},
		OwnAddresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")},
	}
}

func TestAddressesOfAgents(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	tests := map[string]struct {
		endpoint, proxy string
		allowed         []netip.Prefix
		// want is a part of the error, or empty if the address is accepted.
		want string
	}{
		"a public address":                   {endpoint: "https://203.0.113.7:6443"},
		"a private address":                  {endpoint: "https://10.0.0.1"},
		"a DNS name":                         {endpoint: "https://east.example.com:6443"},
		"no address":                         {},
		"a proxy":                            {endpoint: "https://10.0.0.1", proxy: "http://proxy.example.com:3128"},
		"a loopback address":                 {endpoint: "https://127.0.0.1:2379", want: "127.0.0.1 is a loopback address"},
		"another loopback address":           {endpoint: "https://127.8.9.1", want: "127.8.9.1 is a loopback address"},
		"the IPv6 loopback address":          {endpoint: "https://[::1]:2379", want: "::1 is a loopback address"},
		"a loopback address mapped to IPv6":  {endpoint: "https://[::ffff:127.0.0.1]", want: "127.0.0.1 is a loopback address"},
		"localhost":                          {endpoint: "https://localhost:2379", want: "127.0.0.1 is a loopback address"},
		"the metadata service behind NAT64":  {endpoint: "https://[64:ff9b::a9fe:a9fe]", want: "64:ff9b::a9fe:a9fe leads to an IPv4 address, and 169.254.169.254 is a link-local address"},
		"loopback behind NAT64":              {endpoint: "https://[64:ff9b::127.0.0.1]:2379", want: "127.0.0.1 is a loopback address"},
		"loopback behind a local NAT64":      {endpoint: "https://[64:ff9b:1::7f00:1]:2379", want: "127.0.0.1 is a loopback address"},
		"an address of Karmada behind NAT64": {endpoint: "https://[64:ff9b::10.0.0.9]:10250", want: "10.0.0.9 is an address of the control plane"},
		"the metadata service of Alibaba Cloud behind NAT64": {endpoint: "https://[64:ff9b::100.100.100.200]", want: "100.100.100.200 is the address of a metadata service"},
		"the metadata service behind 6to4":                   {endpoint: "https://[2002:a9fe:a9fe::1]", want: "169.254.169.254 is a link-local address"},
		"an IPv4-compatible loopback address":                {endpoint: "https://[::127.0.0.1]", want: "127.0.0.1 is a loopback address"},
		"a proxy behind NAT64":                               {endpoint: "https://10.0.0.1", proxy: "http://[64:ff9b::7f00:1]:8080", want: "127.0.0.1 is a loopback address"},
		"a public address behind NAT64":                      {endpoint: "https://[64:ff9b::203.0.113.7]:6443"},
		"a public address behind 6to4":                       {endpoint: "https://[2002:cb00:7107::1]:6443"},
		"an IPv6 address":                                    {endpoint: "https://[2001:db8::a9fe:a9fe]:6443"},
		"loopback behind NAT64, allowed":                     {endpoint: "https://[64:ff9b::127.0.0.1]:6443", allowed: loopback},
		"an allowed prefix of NAT64":                         {endpoint: "https://[64:ff9b::a9fe:a9fe]", allowed: []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96")}},
		"the API server itself behind NAT64, allowed": {
			endpoint: "https://[64:ff9b::127.0.0.1]:5443", allowed: loopback, want: "is the API server of the control plane itself",
		},
		"localhost as a full name":         {endpoint: "https://a.LOCALHOST.:2379", want: "127.0.0.1 is a loopback address"},
		"the metadata service":             {endpoint: "https://169.254.169.254", want: "169.254.169.254 is a link-local address"},
		"a link-local address with a zone": {endpoint: "https://[fe80::1%25eth0]", want: "fe80::1 is a link-local address"},
		"another metadata service":         {endpoint: "https://[fd00:ec2::254]", want: "the address of a metadata service"},
		"the unspecified address":          {endpoint: "https://0.0.0.0:2379", want: "0.0.0.0 is the unspecified address"},
		"a multicast address":              {endpoint: "https://224.0.0.1", want: "224.0.0.1 is not a unicast address"},
		"HTTP":                             {endpoint: "http://10.0.0.1", want: "http://10.0.0.1 does not have the scheme https"},
		"no scheme":                        {endpoint: "//10.0.0.1", want: "does not have the scheme https"},
		"the API server of Karmada":        {endpoint: "https://Karmada-apiserver.karmada-system.svc:443", want: "is the API server of the control plane itself"},
		"an address of Karmada":            {endpoint: "https://10.0.0.9:10250", want: "10.0.0.9 is an address of the control plane"},
		"a proxy on loopback":              {endpoint: "https://10.0.0.1", proxy: "http://127.0.0.1:8080", want: "127.0.0.1 is a loopback address"},
		"a proxy with another scheme":      {proxy: "ftp://10.0.0.1", want: "does not have the scheme http, https, socks5"},
		"an allowed address":               {endpoint: "https://127.0.0.1:6443", allowed: loopback},
		"localhost, allowed":               {endpoint: "https://localhost:6443", allowed: loopback},
		"the API server itself, allowed":   {endpoint: "https://127.0.0.1:5443", allowed: loopback, want: "127.0.0.1:5443 is the API server of the control plane itself"},
		"HTTP to an allowed address":       {endpoint: "http://127.0.0.1:6443", allowed: loopback, want: "does not have the scheme https"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rules := readsAnySecret
			rules.Addresses = addressRules()
			rules.Addresses.Allowed = test.allowed
			created := registeredCluster(func(c *clusterv1alpha1.Cluster) {
				c.Finalizers, c.Spec.APIEndpoint, c.Spec.ProxyURL = nil, test.endpoint, test.proxy
			})
			stored := registeredCluster(func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint, c.Finalizers = "https://192.0.2.1", nil })
			for action, stored := range map[string]*clusterv1alpha1.Cluster{"create": nil, "update": stored} {
				errs := agent.ValidateCluster(agent.User("east"), created, stored, rules)
				switch {
				case test.want == "" && len(errs) > 0:
					t.Errorf("%s: %v", action, errs)
				case test.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Detail, test.want)):
					t.Errorf("%s: got %v, want %q", action, errs, test.want)
				case test.want != "":
					for _, part := range []string{`cluster "east"`, "--" + agent.AllowedCIDRsFlag} {
						if !strings.Contains(errs[0].Detail, part) {
							t.Errorf("%s: the message does not contain %q: %s", action, part, errs[0].Detail)
						}
					}
				}
			}
			if errs := agent.ValidateCluster("system:admin", created, nil, rules); len(errs) > 0 {
				t.Errorf("an administrator is rejected: %v", errs)
			}
			if errs := agent.ValidateCluster(agent.User("east"), created, created, rules); len(errs) > 0 {
				t.Errorf("stored addresses are rejected: %v", errs)
			}
		})
	}
}

func TestAddressErrorNamesField(t *testing.T) {
	err := &agent.AddressError{
		Cluster: "east", Field: "spec.apiEndpoint", Cause: addressRules().Check(netip.MustParseAddrPort("[fe80::1%eth0]:443")),
	}
	want := `spec.apiEndpoint: the agent of cluster "east" must not make the control plane connect to this address: fe80::1 is a link-local address; ` +
		"choose the https address at which the control plane reaches the cluster, or allow the address with --agent-endpoint-allowed-cidrs of karmada-aggregated-apiserver and karmada-search"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}
