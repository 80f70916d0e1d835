package standalone

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// insider is how servers of Kubernetes in this process reach its API server. They
// read a kubeconfig, and what they made of it loses the network: a member spends
// a fifth of its processor time on connections from the process to itself.
type insider struct {
	kubeconfig string
	transport  http.RoundTripper
}

// enter makes a configuration that was read from the kubeconfig call the API server
// directly. Who it is for and how much it may ask stays as it was.
func (i insider) enter(config *rest.Config) {
	config.Transport = i.transport
	// Certificates are a matter of connections, and forbidden without one.
	config.TLSClientConfig = rest.TLSClientConfig{}
}

func (c *Cluster) insider() insider {
	return insider{kubeconfig: c.insideKubeconfig(), transport: c.inside.Transport}
}
