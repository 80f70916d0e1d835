package standalone

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/pki"
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

const (
	// maxRenewalInterval limits the time between two checks of the certificates, because the clock
	// can be changed and the machine can be suspended between two checks.
	maxRenewalInterval = time.Hour
	// renewalRetryInterval is the time after which a failed renewal is retried.
	renewalRetryInterval = time.Minute
	// minRenewalInterval prevents a busy loop when the clock of the machine stands still.
	minRenewalInterval = time.Second
)

// leafCertificate is a certificate of the cluster with the authority that signs it.
type leafCertificate struct {
	authority *pki.Authority
	name      string
	leaf      pki.Leaf
}

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
	c.leafCertificates = []leafCertificate{
		{c.ca, certAPIServer, pki.Leaf{CommonName: "karmada-apiserver", Hosts: hosts, Lifetime: lifetime}},
		{c.ca, certAdmin, pki.Leaf{CommonName: adminUser, Organizations: []string{adminGroup}, Hosts: hosts, Lifetime: lifetime}},
		{frontProxyCA, certFrontProxyClient, pki.Leaf{CommonName: certFrontProxyClient, Lifetime: lifetime}},
	}
	if _, err := c.ensureLeaves(); err != nil {
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

// ensureLeaves issues the leaf certificates that are missing or due for renewal, and returns the
// time of the next renewal.
func (c *Cluster) ensureLeaves() (next time.Time, err error) {
	for _, each := range c.leafCertificates {
		if _, err := each.authority.EnsureLeaf(each.name, each.leaf); err != nil {
			return time.Time{}, err
		}
		due, err := c.certs.RenewalTime(each.name)
		if err != nil {
			return time.Time{}, err
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, nil
}

// renewCertificates renews each certificate before it expires, as long as the cluster runs.
// The servers reload the files. No server restarts and no connection is closed.
func (c *Cluster) renewCertificates(ctx context.Context) error {
	for ctx.Err() == nil {
		next, err := c.ensureLeaves()
		wait := min(max(time.Until(next), minRenewalInterval), maxRenewalInterval)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Renewing certificates", "cluster", c.options.Name, "directory", c.certs.Path)
			wait = renewalRetryInterval
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

// inProcessKubeconfig returns the path of the kubeconfig of the servers in this process.
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
