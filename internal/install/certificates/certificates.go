// Package certificates decides which of an installation's certificates must be issued, and issues them.
//
// The functions are pure except for the random numbers in keys: the caller reads the stored files, passes
// the time, and stores the result. No function changes its arguments. Invariants:
//
//   - Ensure is idempotent: a second call at the same time changes no byte.
//   - Ensure never replaces an authority. Only a rotation does, and after each of its steps, the
//     certificates from before and after the step are trusted.
//   - A renewal keeps the certificate's key. The key karmada.key also signs service account tokens, so
//     it is never replaced while it or its certificate exists.
package certificates

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/pki"
)

// Names of the certificates, whose files are <name>.crt and <name>.key.
const (
	CA               = "ca"
	Karmada          = "karmada"
	APIServer        = "apiserver"
	FrontProxyCA     = "front-proxy-ca"
	FrontProxyClient = "front-proxy-client"
	EtcdCA           = "etcd-ca"
	EtcdServer       = "etcd-server"
	EtcdClient       = "etcd-client"
)

// The administrator's identity, which all components use.
const (
	adminUser  = "system:admin"
	adminGroup = "system:masters"
)

// Defaults of a Spec.
const (
	DefaultClusterDomain = "cluster.local"
	DefaultReleaseName   = "karmada"

	DefaultSystemNamespace = clusterv1alpha1.NamespaceKarmadaSystem
)

// Set contains the files of an installation's certificates in PEM, by file name, such as "ca.crt" or
// "karmada.key".
//
// An authority's file may contain several certificates. The first one is the signing CA's, and the others
// are trusted as well. During a rotation, the key file contains the signing CA's key, followed by the next
// authority's key.
type Set map[string][]byte

func (s Set) clone() Set {
	if s == nil {
		return Set{}
	}
	return maps.Clone(s)
}

// Spec describes the certificates that an installation needs.
type Spec struct {
	// Namespace is the components' namespace in the host cluster.
	Namespace string
	// ClusterDomain is the host cluster's DNS domain. The default is cluster.local.
	ClusterDomain string
	// ReleaseName is the prefix of Service names. The default is karmada.
	ReleaseName string
	// SystemNamespace is the components' namespace inside the control plane, which verifies the names of
	// Services in this namespace. The default is karmada-system.
	SystemNamespace string
	// ExternalHosts are further DNS names and IP addresses of the API server.
	ExternalHosts []string
	// EtcdReplicas is the number of etcd members. 0 means an external etcd: the set must then contain
	// etcd-ca.crt, etcd-client.crt and etcd-client.key, which are never changed.
	EtcdReplicas int
	// LeafLifetime is the validity of issued certificates. The default is 365 days.
	LeafLifetime time.Duration
	// AuthorityLifetime is the validity of new authorities. The default is 10 years, or LeafLifetime if it is
	// longer.
	AuthorityLifetime time.Duration
	// GivenCA is the user's authority "ca". If it is zero, an authority is created.
	GivenCA pki.GivenAuthority
}

// Change describes one changed certificate.
type Change struct {
	// Name is the certificate's name.
	Name string
	// Reason is a predicate for users, such as "is missing" or "expires on 2027-01-02".
	Reason string
}

// String returns a sentence without a period.
func (c Change) String() string { return c.Name + " " + c.Reason }

// complete returns the Spec with its defaults. If a field is invalid, the returned error names it.
func (s Spec) complete() (Spec, error) {
	if s.ClusterDomain == "" {
		s.ClusterDomain = DefaultClusterDomain
	}
	if s.ReleaseName == "" {
		s.ReleaseName = DefaultReleaseName
	}
	if s.SystemNamespace == "" {
		s.SystemNamespace = DefaultSystemNamespace
	}
	if s.LeafLifetime == 0 {
		s.LeafLifetime = pki.DefaultLeafLifetime
	}
	if s.AuthorityLifetime == 0 {
		s.AuthorityLifetime = max(pki.DefaultAuthorityLifetime, s.LeafLifetime)
	}
	return s, s.validate()
}

func (s Spec) validate() error {
	for _, each := range []struct {
		field, value string
		problems     []string
	}{
		{"namespace", s.Namespace, validation.IsDNS1123Label(s.Namespace)},
		{"cluster domain", s.ClusterDomain, validation.IsDNS1123Subdomain(s.ClusterDomain)},
		{"release name", s.ReleaseName, validation.IsDNS1123Label(s.ReleaseName)},
	} {
		if len(each.problems) > 0 {
			return fmt.Errorf("the %s %q of the installation is invalid: %s", each.field, each.value, strings.Join(each.problems, "; "))
		}
	}
	for _, host := range s.ExternalHosts {
		if !isHost(host) {
			return fmt.Errorf("the external host %q is neither a DNS name nor an IP address: give it without scheme, port and path", host)
		}
	}
	switch {
	case s.EtcdReplicas < 0:
		return fmt.Errorf("the number of etcd replicas is %d: give a positive number, or 0 for an external etcd", s.EtcdReplicas)
	case s.LeafLifetime < 0:
		return fmt.Errorf("the lifetime of certificates is %s: give a positive duration", s.LeafLifetime)
	case s.AuthorityLifetime < s.LeafLifetime:
		return fmt.Errorf("the lifetime %s of certificate authorities is shorter than the lifetime %s of certificates: give a longer one",
			s.AuthorityLifetime, s.LeafLifetime)
	}
	return nil
}

func isHost(host string) bool {
	name := strings.ToLower(host)
	return net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(name)) == 0 || len(validation.IsWildcardDNS1123Subdomain(name)) == 0
}

type authorityRow struct{ name, commonName string }

// leafRow describes a certificate that an authority of the installation signs.
type leafRow struct {
	name, authority, commonName string
	organizations               []string
	hosts                       func(Spec) []string
}

var authorities = []authorityRow{
	{CA, "karmada"},
	{FrontProxyCA, "front-proxy-ca"},
	{EtcdCA, "etcd-ca"},
}

var leaves = []leafRow{
	{name: Karmada, authority: CA, commonName: adminUser, organizations: []string{adminGroup}, hosts: Spec.componentHosts},
	{name: APIServer, authority: CA, commonName: "karmada-apiserver", hosts: Spec.componentHosts},
	{name: FrontProxyClient, authority: FrontProxyCA, commonName: "front-proxy-client"},
	{name: EtcdServer, authority: EtcdCA, commonName: "karmada-etcd-server", hosts: Spec.etcdHosts},
	{name: EtcdClient, authority: EtcdCA, commonName: "karmada-etcd-client"},
}

// leavesOf returns the certificates that the named authority signs.
func leavesOf(authority string) []leafRow {
	return slices.DeleteFunc(slices.Clone(leaves), func(row leafRow) bool { return row.authority != authority })
}

func (s Spec) hasExternalEtcd() bool { return s.EtcdReplicas == 0 }

// authorities returns the installation's authorities.
func (s Spec) authorities() []authorityRow {
	return slices.DeleteFunc(slices.Clone(authorities), func(row authorityRow) bool { return row.name == EtcdCA && s.hasExternalEtcd() })
}

// authority returns the named authority.
func (s Spec) authority(name string) (authorityRow, error) {
	for _, row := range s.authorities() {
		if row.name == name {
			return row, nil
		}
	}
	if name == EtcdCA {
		return authorityRow{}, fmt.Errorf("the installation has no authority %q, because its etcd is external: rotate the authority of this etcd with the tools of etcd", name)
	}
	return authorityRow{}, fmt.Errorf("there is no authority %q: use %s", name, strings.Join(AuthorityNames(), ", "))
}

// AuthorityNames returns the names of all authorities.
func AuthorityNames() []string {
	names := make([]string, len(authorities))
	for i, row := range authorities {
		names[i] = row.name
	}
	return names
}

// LeafNames returns the names of all certificates that the installation's authorities sign.
func LeafNames() []string {
	names := make([]string, len(leaves))
	for i, row := range leaves {
		names[i] = row.name
	}
	return names
}

// leaf returns the required properties of a certificate.
func (s Spec) leaf(row leafRow) pki.Leaf {
	leaf := pki.Leaf{CommonName: row.commonName, Organizations: row.organizations, Lifetime: s.LeafLifetime}
	if row.hosts != nil {
		leaf.Hosts = row.hosts(s)
	}
	return leaf
}

// componentHosts returns the host names of the installation's servers: the API server, the webhook and the
// aggregated API servers.
func (s Spec) componentHosts() []string {
	service := s.Namespace + ".svc"
	full := service + "." + s.ClusterDomain
	hosts := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	for _, component := range []string{"apiserver", "webhook", "aggregated-apiserver", "search", "metrics-adapter"} {
		name := s.ReleaseName + "-" + component
		hosts = append(hosts, name, name+"."+full)
	}
	hosts = append(hosts, s.ReleaseName+"-webhook."+service, "*."+full, "*."+service, "*."+s.SystemNamespace+".svc", "127.0.0.1")
	return unique(append(hosts, s.ExternalHosts...))
}

// etcdHosts returns the host names of the etcd members. Members verify each other by the replicas' names,
// and clients also use the Service's name.
func (s Spec) etcdHosts() []string {
	service := "etcd." + s.Namespace + ".svc"
	full := service + "." + s.ClusterDomain
	hosts := []string{"localhost", "127.0.0.1", service, full, "*." + full}
	for i := range s.EtcdReplicas {
		hosts = append(hosts, fmt.Sprintf("etcd-%d.%s", i, full))
	}
	return hosts
}

// unique removes repeated names and keeps the order.
func unique(names []string) []string {
	var kept []string
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}
