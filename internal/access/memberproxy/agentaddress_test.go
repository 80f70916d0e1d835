package memberproxy_test

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// allowLoopback permits agents to make the proxy connect to loopback addresses.
func (f *fixture) allowLoopback(t *testing.T) {
	t.Helper()
	f.addresses.AllowedCIDRs = []net.IPNet{{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}}
	f.createProxy(t, nil)
}

// TestAgentCannotChooseAddress checks that the proxy sends nothing to an address that an agent may not
// choose, even if a DNS name leads to the address.
func TestAgentCannotChooseAddress(t *testing.T) {
	rejected := "127.0.0.1 is a loopback address"
	tests := map[string]struct {
		// address replaces the member's address. HOST stands for the member's host and port.
		address, proxy string
		upgrade        bool
		allowed        bool
		mode           clusterv1alpha1.ClusterSyncMode
		want           string
	}{
		"a loopback address":             {address: "https://HOST", want: rejected},
		"a name with a loopback address": {address: "https://localhost:PORT", want: "is a loopback address"},
		"a proxy":                        {address: "https://east.example", proxy: "http://HOST", want: "spec.proxyURL: "},
		"a proxy with TLS":               {address: "https://east.example", proxy: "https://HOST", want: rejected},
		"a SOCKS5 proxy":                 {address: "https://east.example", proxy: "socks5://HOST", want: rejected},
		"a terminal":                     {address: "https://HOST", upgrade: true, want: rejected},
		"an allowed address":             {address: "https://HOST", allowed: true},
		"a cluster of an administrator":  {address: "https://HOST", mode: clusterv1alpha1.Push},
		"a stored address without TLS":   {address: "http://HOST", want: rejected},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			f, server := newFixture(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
			if test.allowed {
				f.allowLoopback(t)
			}
			host := strings.TrimPrefix(server.URL, "https://")
			_, port, _ := net.SplitHostPort(host)
			address := strings.NewReplacer("HOST", host, "PORT", port)
			f.cluster.Spec.SyncMode = clusterv1alpha1.Pull
			if test.mode != "" {
				f.cluster.Spec.SyncMode = test.mode
			}
			f.cluster.Spec.APIEndpoint, f.cluster.Spec.ProxyURL = address.Replace(test.address), address.Replace(test.proxy)
			request := newRequest(t, "GET", f.front(t).URL+"/proxy/api", "")
			if test.upgrade {
				request.Header.Set("Connection", "Upgrade")
				request.Header.Set("Upgrade", "SPDY/3.1")
			}
			got := sendRequest(t, request)
			if test.want == "" {
				if got.code != http.StatusOK || requests.Load() != 1 {
					t.Errorf("got %v, %d requests, want one", got, requests.Load())
				}
				return
			}
			if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, test.want) || requests.Load() > 0 {
				t.Errorf("got %v, %d requests, want %q", got, requests.Load(), test.want)
			}
		})
	}
}
