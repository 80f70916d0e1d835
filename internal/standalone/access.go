package standalone

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// inProcessAccess lets Kubernetes servers in this process call the API server without a network connection.
// The servers read a kubeconfig, and useTransport then replaces the transport of their client configuration.
// Otherwise, connections from the process to itself would use a fifth of a member's CPU time.
type inProcessAccess struct {
	kubeconfig string
	transport  http.RoundTripper
}

// useTransport makes clients with a configuration from the kubeconfig call the API server directly. It keeps
// the configuration's user and rate limit.
func (i inProcessAccess) useTransport(config *rest.Config) {
	config.Transport = i.transport
	// Remove the TLS configuration, because client-go rejects it together with a custom transport.
	config.TLSClientConfig = rest.TLSClientConfig{}
}

func (c *Cluster) inProcessAccess() inProcessAccess {
	return inProcessAccess{kubeconfig: c.inProcessKubeconfig(), transport: c.inProcessConfig.Transport}
}
