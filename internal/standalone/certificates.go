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
	// renewalCheck is how often certificates are looked at although none is due: the
	// clock of the machine may have been set, or the machine have slept.
	renewalCheck = time.Hour
	// renewalRetry is when a renewal that did not succeed is tried again, at most.
	renewalRetry = time.Minute
	// renewalPause keeps a clock that stands still from making this a busy loop.
	renewalPause = time.Second
)

// issued is a certificate that a cluster has.
type issued struct {
	authority *pki.Authority
	name      string
	leaf      pki.Leaf
}

// ensureCertificates issues what is missing or due. Authorities live for ten years.
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
	c.leaves = []issued{
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
		"karmada-apiserver", "karmada-apiserver.karmada-system.svc", "10.96.0.1",
	}
	switch ip := net.ParseIP(c.options.BindAddress); {
	case ip == nil || c.options.BindAddress == Loopback:
	case ip.IsUnspecified():
		hosts = append(hosts, ownAddresses()...)
	default:
		hosts = append(hosts, c.options.BindAddress)
	}
	hosts = append(hosts, c.options.ServingNames...)
	if hostname, err := os.Hostname(); err == nil {
		hosts = append(hosts, hostname)
	}
	return hosts
}

// ownAddresses are those at which other machines may reach this one.
func ownAddresses() []string {
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

// ensureLeaves issues what is missing or due, and returns when the next one is.
func (c *Cluster) ensureLeaves() (next time.Time, err error) {
	for _, each := range c.leaves {
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

// renewCertificates issues each certificate anew before its end, as long as the
// cluster runs. The servers notice the new files; nothing is restarted and no
// connection ends.
func (c *Cluster) renewCertificates(ctx context.Context) error {
	for ctx.Err() == nil {
		next, err := c.ensureLeaves()
		wait := min(max(time.Until(next), renewalPause), renewalCheck)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Renewing certificates", "cluster", c.options.Name, "directory", c.certs.Path)
			wait = renewalRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

// insideKubeconfig is the path of the kubeconfig of the servers of this process.
func (c *Cluster) insideKubeconfig() string {
	return filepath.Join(c.options.Dir, "inside.kubeconfig")
}

// writeInsideKubeconfig writes how the servers of this process reach the API
// server: with its token for them, which ends with the process and not before.
func (c *Cluster) writeInsideKubeconfig() error {
	name := c.options.Name
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Server(), CertificateAuthorityData: c.ca.PEM()}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: c.inside.BearerToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, c.insideKubeconfig()); err != nil {
		return fmt.Errorf("writing kubeconfig of the servers of cluster %q: %w", name, err)
	}
	return nil
}
