package standalone

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// inProcessAccess gives servers of Kubernetes in this process direct access to its API
// server. They read a kubeconfig, and the transport of the resulting client configuration is
// replaced. Otherwise a member would spend a fifth of its CPU time on connections from the
// process to itself.
type inProcessAccess struct {
	kubeconfig string
	transport  http.RoundTripper
}

// useTransport makes a client configuration that was read from the kubeconfig call the API
// server directly. The user and the rate limit stay as they are.
func (i inProcessAccess) useTransport(config *rest.Config) {
	config.Transport = i.transport
	// client-go rejects a TLS configuration together with a custom transport.
	config.TLSClientConfig = rest.TLSClientConfig{}
}

func (c *Cluster) inProcessAccess() inProcessAccess {
	return inProcessAccess{kubeconfig: c.inProcessKubeconfig(), transport: c.inProcessConfig.Transport}
}
