package processnode

import (
	"fmt"
	"os"
	"path/filepath"

	"karmada.io/karmada/internal/standalone/processnode/layout"
	"karmada.io/karmada/internal/standalone/processnode/services"
)

// egressConfiguration is the configuration with which kube-apiserver connects to webhooks and
// aggregated API servers through a proxy. Webhooks with a URL are of the kind controlplane.
const egressConfiguration = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {tcp: &proxy {url: %q, tlsConfig: {caBundle: %q, clientCert: %q, clientKey: %q}}}}}
- {name: controlplane, connection: {proxyProtocol: HTTPConnect, transport: {tcp: *proxy}}}
`

// egressProxy returns the proxy through which the program connects to Services. It is nil if the
// program needs no proxy, because only API servers can use one.
func (c *container) egressProxy() *services.Proxy {
	selected, err := c.pod.node.selectProgram(Container{Image: c.spec.Image, Command: c.spec.Command})
	if err != nil || !layout.IsAPIServer(selected.name) {
		return nil
	}
	return c.pod.node.services.Proxy()
}

// egressFile is the path of egressConfiguration. The program cannot replace this file by a link,
// because the directory is not writable for it.
func (c *container) egressFile() string { return filepath.Join(c.dir, "egress.yaml") }

// egressFiles returns the files that the program reads to use the proxy.
func (c *container) egressFiles() []string {
	proxy := c.egressProxy()
	if proxy == nil {
		return nil
	}
	return []string{c.egressFile(), proxy.CAFile, proxy.CertFile, proxy.KeyFile}
}

// egressArguments writes the configuration of the proxy, and returns the arguments that make the
// program use it.
func (c *container) egressArguments() ([]string, error) {
	proxy := c.egressProxy()
	if proxy == nil {
		return nil, nil
	}
	configuration := fmt.Appendf(nil, egressConfiguration, proxy.URL, proxy.CAFile, proxy.CertFile, proxy.KeyFile)
	if err := os.WriteFile(c.egressFile(), configuration, 0o600); err != nil {
		return nil, fmt.Errorf("writing the proxy of container %q: %w", c.spec.Name, err)
	}
	return []string{"--egress-selector-config-file=" + c.egressFile()}, nil
}
