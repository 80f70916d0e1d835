// Package certificates decides which certificates of an installation must be issued, and issues them.
//
// The functions are pure except for the random numbers of keys: the caller reads the stored files,
// passes in the time, and stores the result. No function changes its arguments.
//
// Invariants:
//   - Ensure is idempotent: a second call at the same time changes no byte.
//   - An authority is never replaced by Ensure. Only the steps of a rotation replace it, and at each
//     step the certificates of the step before and of the step after are trusted.
//   - A renewal keeps the key of a certificate. The key karmada.key also signs the tokens of service
//     accounts, and is never replaced while it or its certificate exists.
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

// Names of the certificates. The files of a certificate are <name>.crt and <name>.key.
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

// The identity of the administrator, which all components use.
const (
	adminUser  = "system:admin"
	adminGroup = "system:masters"
)

// The defaults of a Spec.
const (
	DefaultClusterDomain = "cluster.local"
	DefaultReleaseName   = "karmada"

	DefaultSystemNamespace = clusterv1alpha1.NamespaceKarmadaSystem
)

// Set contains the files of the certificates of one installation: the name of a file, such as
// "ca.crt" or "karmada.key", and its content in PEM.
//
// The file of an authority may contain several certificates. The first one signs, and the others
// are trusted as well. During a rotation, the file of its key contains the key of the first
// certificate, followed by the key of the next authority.
type Set map[string][]byte

func (s Set) clone() Set {
	if s == nil {
		return Set{}
	}
	return maps.Clone(s)
}

// Spec describes the certificates that an installation needs.
type Spec struct {
	// Namespace is the namespace of the components in the host cluster.
	Namespace string
	// ClusterDomain is the DNS domain of the host cluster. The default is cluster.local.
	ClusterDomain string
	// ReleaseName is the prefix of the names of Services. The default is karmada.
	ReleaseName string
	// SystemNamespace is the namespace of the components inside the control plane, which verifies
	// the names of the Services in it. The default is karmada-system.
	SystemNamespace string
	// ExternalHosts are additional DNS names and IP addresses of the API server.
	ExternalHosts []string
	// EtcdReplicas is the number of members of etcd. 0 means an external etcd: the set must then
	// contain etcd-ca.crt, etcd-client.crt and etcd-client.key, which are never changed.
	EtcdReplicas int
	// LeafLifetime is the validity of issued certificates. The default is 365 days.
	LeafLifetime time.Duration
	// AuthorityLifetime is the validity of new authorities. The default is 10 years.
	AuthorityLifetime time.Duration
	// GivenCA is the authority "ca" from the user. If it is zero, an authority is created.
	GivenCA pki.GivenAuthority
}

// Change is one change of a certificate.
type Change struct {
	// Name is the name of the certificate.
	Name string
	// Reason is a predicate for users, such as "is missing" or "expires on 2027-01-02".
	Reason string
}

// String returns a sentence without a period.
func (c Change) String() string { return c.Name + " " + c.Reason }

// complete returns the Spec with its defaults, or an error that names an invalid field.
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
		return fmt.Errorf("the lifetime %s of certificate authorities is shorter than the lifetime %s of certificates: give a longer one", s.AuthorityLifetime, s.LeafLifetime)
	}
	return nil
}

func isHost(host string) bool {
	name := strings.ToLower(host)
	return net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(name)) == 0 || len(validation.IsWildcardDNS1123Subdomain(name)) == 0
}

// authorityRow is a certificate authority of an installation.
type authorityRow struct{ name, commonName string }

// leafRow is a leaf certificate of an installation, with its authority.
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

// leavesOf returns the certificates that an authority signs.
func leavesOf(authority string) []leafRow {
	return slices.DeleteFunc(slices.Clone(leaves), func(row leafRow) bool { return row.authority != authority })
}

// hasExternalEtcd reports whether the installation uses an etcd that it does not run.
func (s Spec) hasExternalEtcd() bool { return s.EtcdReplicas == 0 }

// authorities returns the authorities of the installation.
func (s Spec) authorities() []authorityRow {
	return slices.DeleteFunc(slices.Clone(authorities), func(row authorityRow) bool { return row.name == EtcdCA && s.hasExternalEtcd() })
}

// authority returns the authority with this name.
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

// LeafNames returns the names of all certificates that authorities of the installation sign.
func LeafNames() []string {
	names := make([]string, len(leaves))
	for i, row := range leaves {
		names[i] = row.name
	}
	return names
}

// leaf returns the requirements of a certificate.
func (s Spec) leaf(row leafRow) pki.Leaf {
	leaf := pki.Leaf{CommonName: row.commonName, Organizations: row.organizations, Lifetime: s.LeafLifetime}
	if row.hosts != nil {
		leaf.Hosts = row.hosts(s)
	}
	return leaf
}

// componentHosts returns the names of the servers of the installation: the API server, the webhook
// and the aggregated API servers.
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

// etcdHosts returns the names of the members of etcd. Members verify the addresses of each other
// with the names of the replicas, and clients use the name of the Service too.
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
