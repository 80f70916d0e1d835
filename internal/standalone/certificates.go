package standalone

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone/etcd"
)

// Names of the certificates in a cluster's pki directory.
const (
	certCA               = "ca"
	certAPIServer        = "apiserver"
	certAdmin            = "karmada"
	certServiceAccount   = "sa"
	certFrontProxyCA     = "front-proxy-ca"
	certFrontProxyClient = "front-proxy-client"
)

const (
	adminUser     = "system:admin"
	adminGroup    = "system:masters"
	localhostName = "localhost"
)

// ensureCertificates issues the certificates that are missing or due for renewal. Authorities
// are valid for ten years.
func (c *Cluster) ensureCertificates() error {
	var err error
	if c.ca, err = c.certs.EnsureAuthority(certCA, c.options.CommonName); err != nil {
		return err
	}
	frontProxyCA, err := c.certs.EnsureAuthority(certFrontProxyCA, certFrontProxyCA)
	if err != nil {
		return err
	}
	hosts, lifetime := c.servingNames(), c.options.CertificateLifetime
	if c.leafCertificates, err = etcd.Certificates(c.certs, lifetime); err != nil {
		return err
	}
	c.leafCertificates = append(c.leafCertificates, []pki.Renewable{
		{Authority: c.ca, Name: certAPIServer, Leaf: pki.Leaf{CommonName: "karmada-apiserver", Hosts: hosts, Lifetime: lifetime}},
		{Authority: c.ca, Name: certAdmin, Leaf: pki.Leaf{CommonName: adminUser, Organizations: []string{adminGroup}, Hosts: hosts,
			Lifetime: lifetime}},
		{Authority: frontProxyCA, Name: certFrontProxyClient, Leaf: pki.Leaf{CommonName: certFrontProxyClient, Lifetime: lifetime}},
	}...)
	if _, err := pki.EnsureAll(c.leafCertificates); err != nil {
		return err
	}
	return c.certs.EnsureKey(certServiceAccount)
}

func (c *Cluster) servingNames() []string {
	hosts := []string{
		localhostName, Loopback, "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"karmada-apiserver", "karmada-apiserver." + clusterv1alpha1.NamespaceKarmadaSystem + ".svc", "10.96.0.1",
	}
	switch ip := net.ParseIP(c.options.BindAddress); {
	case ip == nil || c.options.BindAddress == Loopback:
	case ip.IsUnspecified():
		hosts = append(hosts, machineAddresses()...)
	default:
		hosts = append(hosts, c.options.BindAddress)
	}
	hosts = append(hosts, c.options.ServingNames...)
	if hostname, err := os.Hostname(); err == nil {
		hosts = append(hosts, hostname)
	}
	return hosts
}

// machineAddresses returns the addresses at which other machines may reach this machine.
func machineAddresses() []string {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var addresses []string
	for _, address := range found {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			addresses = append(addresses, network.IP.String())
		}
	}
	return addresses
}

// renewCertificates renews each certificate before it expires, as long as the cluster runs.
// The servers reload the files. No server restarts and no connection is closed.
func (c *Cluster) renewCertificates(ctx context.Context) error {
	pki.RenewAll(ctx, c.leafCertificates, func(err error) error {
		if err != nil {
			klog.FromContext(ctx).Error(err, "Renewing certificates", "cluster", c.options.Name, "directory", c.certs.Path)
		}
		return err
	})
	return nil
}

// inProcessKubeconfig returns the path of the kubeconfig for the servers in this process.
func (c *Cluster) inProcessKubeconfig() string {
	return filepath.Join(c.options.Dir, "inside.kubeconfig")
}

// writeInProcessKubeconfig writes the kubeconfig with which the servers of this process reach
// the API server. Its token is valid until the process ends.
func (c *Cluster) writeInProcessKubeconfig() error {
	name := c.options.Name
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Server(), CertificateAuthorityData: c.ca.PEM()}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: c.inProcessConfig.BearerToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, c.inProcessKubeconfig()); err != nil {
		return fmt.Errorf("writing the kubeconfig of the servers of cluster %q: %w", name, err)
	}
	return nil
}
