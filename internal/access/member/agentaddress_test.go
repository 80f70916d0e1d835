package member

import (
	"errors"
	"net"
	"testing"

	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
	"karmada.io/karmada/internal/domain/agent"
)

// TestAgentCannotChooseAddress checks which requests reach a server on a loopback address.
func TestAgentCannotChooseAddress(t *testing.T) {
	loopback := agentaddress.Options{AllowedCIDRs: []net.IPNet{{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}}}
	tests := map[string]struct {
		mode    clusterv1alpha1.ClusterSyncMode
		options agentaddress.Options
		proxy   bool
		reached bool
		field   string
	}{
		"an agent":                          {mode: clusterv1alpha1.Pull, field: "spec.apiEndpoint"},
		"an agent with a proxy":             {mode: clusterv1alpha1.Pull, proxy: true, field: "spec.proxyURL"},
		"an agent, with an allowed address": {mode: clusterv1alpha1.Pull, options: loopback, reached: true},
		"an agent, with an allowed proxy":   {mode: clusterv1alpha1.Pull, options: loopback, proxy: true},
		"an administrator":                  {mode: clusterv1alpha1.Push, reached: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, "valid")
			fixture := newMemberFixture(t, server, "valid")
			fixture.members.options.AgentAddresses = agentaddress.NewGuard(test.options, "")
			fixture.cluster.Spec.SyncMode = test.mode
			if test.proxy {
				fixture.cluster.Spec.ProxyURL = "http://127.0.0.1:1"
			}
			opened, err := fixture.members.GetForCluster(t.Context(), fixture.cluster)
			if err != nil {
				t.Fatal(err)
			}
			httpClient, err := rest.HTTPClientFor(opened.Config())
			if err != nil {
				t.Fatal(err)
			}
			defer httpClient.CloseIdleConnections()
			response, err := httpClient.Get(server.URL)
			if err == nil {
				_ = response.Body.Close()
			}
			if reached := err == nil; reached != test.reached {
				t.Errorf("reached: %v, want %v (%v)", reached, test.reached, err)
			}
			var forbidden *agent.AddressError
			if errors.As(err, &forbidden) != (test.field != "") || forbidden != nil && forbidden.Field != test.field {
				t.Errorf("got %v, want an error about %q", err, test.field)
			}
		})
	}
}
