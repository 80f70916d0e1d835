package standalone

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// inProcessAccess lets the Kubernetes servers of this process call the API server without a network
// connection. These servers read a kubeconfig, and useTransport then replaces the transport of
// their client configuration. Network connections from the process to itself would take a fifth of
// the CPU time of a member.
type inProcessAccess struct {
	kubeconfig string
	transport  http.RoundTripper
}

// useTransport makes the clients of a configuration that was read from the kubeconfig call the API
// server directly. The user and the rate limit of the configuration do not change.
func (i inProcessAccess) useTransport(config *rest.Config) {
	config.Transport = i.transport
	// Remove the TLS configuration, because client-go rejects it together with a custom transport.
	config.TLSClientConfig = rest.TLSClientConfig{}
}

func (c *Cluster) inProcessAccess() inProcessAccess {
	return inProcessAccess{kubeconfig: c.inProcessKubeconfig(), transport: c.inProcessConfig.Transport}
}
