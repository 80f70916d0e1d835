package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certutil "k8s.io/client-go/util/cert"
)

var testNow = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func testSpec() Spec {
	return Spec{Namespace: "karmada-system", ExternalHosts: []string{"karmada.example.org", "203.0.113.7"}, EtcdReplicas: 2}
}

// mustEnsure returns a complete set.
func mustEnsure(t testing.TB, existing Set, spec Spec, now time.Time) (Set, []Change) {
	t.Helper()
	set, changes, err := Ensure(existing, spec, now)
	if err != nil {
		t.Fatal(err)
	}
	return set, changes
}

func parse(t testing.TB, set Set, name string) *x509.Certificate {
	t.Helper()
	certs, err := certutil.ParseCertsPEM(set[name+".crt"])
	if err != nil {
		t.Fatalf("%s.crt: %v", name, err)
	}
	return certs[0]
}

func TestCertificatesOfInstallation(t *testing.T) {
	servers := []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"karmada-apiserver", "karmada-apiserver.karmada-system.svc.cluster.local",
		"karmada-webhook", "karmada-webhook.karmada-system.svc.cluster.local",
		"karmada-aggregated-apiserver", "karmada-aggregated-apiserver.karmada-system.svc.cluster.local",
		"karmada-search", "karmada-search.karmada-system.svc.cluster.local",
		"karmada-metrics-adapter", "karmada-metrics-adapter.karmada-system.svc.cluster.local",
		"karmada-webhook.karmada-system.svc", "*.karmada-system.svc.cluster.local", "*.karmada-system.svc",
		"karmada.example.org", "127.0.0.1", "203.0.113.7",
	}
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	type described struct {
		Subject, Issuer string
		Names           []string
		Usages          []x509.ExtKeyUsage
		IsCA            bool
		Days            int
	}
	want := map[string]described{
		"ca":                 {Subject: "CN=karmada", Issuer: "CN=karmada", IsCA: true, Days: 3650},
		"karmada":            {Subject: "CN=system:admin,O=system:masters", Issuer: "CN=karmada", Names: servers, Usages: both, Days: 365},
		"apiserver":          {Subject: "CN=karmada-apiserver", Issuer: "CN=karmada", Names: servers, Usages: both, Days: 365},
		"front-proxy-ca":     {Subject: "CN=front-proxy-ca", Issuer: "CN=front-proxy-ca", IsCA: true, Days: 3650},
		"front-proxy-client": {Subject: "CN=front-proxy-client", Issuer: "CN=front-proxy-ca", Usages: both, Days: 365},
		"etcd-ca":            {Subject: "CN=etcd-ca", Issuer: "CN=etcd-ca", IsCA: true, Days: 3650},
		"etcd-server": {Subject: "CN=karmada-etcd-server", Issuer: "CN=etcd-ca", Usages: both, Days: 365, Names: []string{
			"localhost", "etcd.karmada-system.svc", "etcd.karmada-system.svc.cluster.local", "*.etcd.karmada-system.svc.cluster.local",
			"etcd-0.etcd.karmada-system.svc.cluster.local", "etcd-1.etcd.karmada-system.svc.cluster.local", "127.0.0.1",
		}},
		"etcd-client": {Subject: "CN=karmada-etcd-client", Issuer: "CN=etcd-ca", Usages: both, Days: 365},
	}
	set, changes := mustEnsure(t, nil, testSpec(), testNow)
	got := map[string]described{}
	for file := range set {
		name, isCert := strings.CutSuffix(file, ".crt")
		if !isCert {
			continue
		}
		cert := parse(t, set, name)
		if key, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
			t.Errorf("%s has no key of the curve P-256", name)
		}
		if _, err := tls.X509KeyPair(set[name+".crt"], set[name+".key"]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		names := cert.DNSNames
		for _, ip := range cert.IPAddresses {
			names = append(names, ip.String())
		}
		got[name] = described{cert.Subject.String(), cert.Issuer.String(), names, cert.ExtKeyUsage, cert.IsCA, int(cert.NotAfter.Sub(testNow) / day)}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	if len(changes) != len(want) || slices.ContainsFunc(changes, func(c Change) bool { return c.Reason != "is missing" }) {
		t.Errorf("changes %v", changes)
	}
}

func TestNamesFollowReleaseAndDomain(t *testing.T) {
	set, _ := mustEnsure(t, nil, Spec{Namespace: "prod", ReleaseName: "fleet", ClusterDomain: "k8s.example", EtcdReplicas: 1}, testNow)
	for name, hosts := range map[string][]string{
		"apiserver":   {"fleet-apiserver.prod.svc.k8s.example", "fleet-webhook.prod.svc", "anything.prod.svc", "fleet-search"},
		"etcd-server": {"etcd-0.etcd.prod.svc.k8s.example", "etcd-7.etcd.prod.svc.k8s.example"},
	} {
		for _, host := range hosts {
			if err := parse(t, set, name).VerifyHostname(host); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestInvalidSpecs(t *testing.T) {
	tests := map[string]struct {
		edit func(*Spec)
		want string
	}{
		"no namespace":                       {func(s *Spec) { s.Namespace = "" }, `the namespace ""`},
		"a namespace with a dot":             {func(s *Spec) { s.Namespace = "a.b" }, `the namespace "a.b"`},
		"a release with capitals":            {func(s *Spec) { s.ReleaseName = "K" }, `the release name "K"`},
		"a domain that ends in a dot":        {func(s *Spec) { s.ClusterDomain = "cluster.local." }, `the cluster domain "cluster.local."`},
		"a URL as external host":             {func(s *Spec) { s.ExternalHosts = []string{"https://a:5443"} }, `the external host "https://a:5443"`},
		"an empty external host":             {func(s *Spec) { s.ExternalHosts = []string{""} }, `the external host ""`},
		"a negative number of replicas":      {func(s *Spec) { s.EtcdReplicas = -1 }, "the number of etcd replicas is -1"},
		"a negative lifetime":                {func(s *Spec) { s.LeafLifetime = -1 }, "the lifetime of certificates"},
		"an authority that expires too soon": {func(s *Spec) { s.AuthorityLifetime = time.Hour }, "the lifetime 1h0m0s of certificate authorities"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			test.edit(&spec)
			set, changes, err := Ensure(nil, spec, testNow)
			if err == nil || !strings.Contains(err.Error(), test.want) || set != nil || changes != nil {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestArgumentsStayUnchanged(t *testing.T) {
	existing, _ := mustEnsure(t, nil, testSpec(), testNow)
	before := maps.Clone(existing)
	later := testNow.Add(300 * day)
	if _, changes := mustEnsure(t, existing, testSpec(), later); len(changes) != 5 {
		t.Errorf("changes %v", changes)
	}
	begun, _, err := BeginRotation(existing, testSpec(), CA, later)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := SwitchRotation(begun, testSpec(), CA, later); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, existing); diff != "" {
		t.Errorf("the existing set has changed:\n%s", diff)
	}
}
