package aggregated_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/servers/aggregated"
	"karmada.io/karmada/internal/testenv/testetcd"
)

// startBehindKarmada runs a server as in production: with delegation, admission, priority and
// fairness. The returned directory has client certificates.
func startBehindKarmada(t *testing.T, secrets ...corev1.Secret) (config *rest.Config, certificates pki.Dir) {
	t.Helper()
	dir := pki.Dir{Path: t.TempDir()}
	authority, err := dir.EnsureAuthority("front-proxy-ca", "front-proxy-ca")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"front-proxy-client", "stranger"} {
		if _, err := authority.EnsureLeaf(name, pki.Leaf{CommonName: name}); err != nil {
			t.Fatal(err)
		}
	}
	clients, err := dir.EnsureAuthority("client-ca", "client-ca")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.EnsureLeaf("alice", pki.Leaf{CommonName: "alice"}); err != nil {
		t.Fatal(err)
	}
	karmada := &fakeKarmadaAPI{secrets: secrets, authentication: map[string]string{
		"client-ca-file":                     string(clients.PEM()),
		"requestheader-client-ca-file":       string(authority.PEM()),
		"requestheader-allowed-names":        jsonList("front-proxy-client"),
		"requestheader-username-headers":     jsonList("X-Remote-User"),
		"requestheader-uid-headers":          jsonList("X-Remote-Uid"),
		"requestheader-group-headers":        jsonList("X-Remote-Group"),
		"requestheader-extra-headers-prefix": jsonList("X-Remote-Extra-"),
	}}
	o, err := aggregated.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	if o.Server.SecureServing.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	o.Server.SecureServing.ServerCert.CertDirectory = ""
	if err := o.UseEtcd(testetcd.Start(t).APIServerFlags()); err != nil {
		t.Fatal(err)
	}
	o.Karmada = karmada.start(t)
	return startServer(t, o), dir
}

func TestAuthenticationAndAuthorizationAreDelegated(t *testing.T) {
	config, certificates := startBehindKarmada(t)
	certificate := func(name string) func(*rest.Config) {
		return func(c *rest.Config) {
			c.TLSClientConfig.CertFile, c.TLSClientConfig.KeyFile = certificates.CertFile(name), certificates.KeyFile(name)
			c.Wrap(func(rt http.RoundTripper) http.RoundTripper {
				return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
					req.Header.Set("X-Remote-User", "alice")
					return rt.RoundTrip(req)
				})
			})
		}
	}
	tests := map[string]struct {
		login func(*rest.Config)
		want  func(error) bool
	}{
		"a permitted user with a token":               {func(c *rest.Config) { c.BearerToken = "alice" }, isAllowed},
		"a user with a token and without permissions": {func(c *rest.Config) { c.BearerToken = "bob" }, apierrors.IsForbidden},
		"a user with a client certificate": {func(c *rest.Config) {
			c.TLSClientConfig.CertFile, c.TLSClientConfig.KeyFile = certificates.CertFile("alice"), certificates.KeyFile("alice")
		}, isAllowed},
		"an anonymous user":                      {func(*rest.Config) {}, apierrors.IsForbidden},
		"the front proxy on behalf of a user":    {certificate("front-proxy-client"), isAllowed},
		"another client of the front proxy's CA": {certificate("stranger"), apierrors.IsUnauthorized},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			userConfig := rest.CopyConfig(config)
			test.login(userConfig)
			transport, err := rest.HTTPClientFor(userConfig)
			if err != nil {
				t.Fatal(err)
			}
			defer transport.CloseIdleConnections()
			userConfig.GroupVersion, userConfig.APIPath = &clusterv1alpha1.GroupVersion, "/apis"
			userConfig.NegotiatedSerializer = metav1Codecs()
			raw, err := rest.RESTClientForConfigAndClient(userConfig, transport)
			if err != nil {
				t.Fatal(err)
			}
			if err := raw.Get().Resource("clusters").Do(t.Context()).Error(); !test.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestClusterProxyReachesAMember(t *testing.T) {
	member := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, req.URL.RequestURI()+" as "+req.Header.Get("Impersonate-User")+" with "+req.Header.Get("Authorization"))
	}))
	defer member.Close()
	config, _ := startBehindKarmada(t, corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1-impersonator", ResourceVersion: "1"},
		Data:       map[string][]byte{"token": []byte("impersonator")},
	})
	config.BearerToken = "alice"
	karmada := newClient(t, config)
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: member.URL,
			ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1-impersonator"},
		},
	}
	if err := karmada.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := karmada.Get(t.Context(), types.NamespacedName{Name: "m1"}, cluster); err != nil {
		t.Fatal(err)
	}
	if got, want := getThroughProxy(t, config, "api/v1/pods?limit=1"), "/api/v1/pods?limit=1 as alice with Bearer impersonator"; got != want {
		t.Errorf("the member received %q, want %q", got, want)
	}
}

func getThroughProxy(t *testing.T, config *rest.Config, path string) string {
	t.Helper()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	transport.Timeout = maxWait
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		config.Host+"/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (r roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

func isAllowed(err error) bool { return err == nil }

func TestTwoServersInOneProcessAreIndependent(t *testing.T) {
	storage := testetcd.Start(t)
	one, two := newOptions(t, storage), newOptions(t, storage)
	two.Server.Etcd.StorageConfig.Prefix = "/other"
	first, second := newClient(t, startServer(t, one)), newClient(t, startServer(t, two))
	createCluster(t, first, newMemberCluster("m1"))
	var list clusterv1alpha1.ClusterList
	if err := second.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 0 {
		t.Errorf("%d clusters of one server are in the list of the other", len(list.Items))
	}
	if _, err := os.Stat("apiserver.local.config"); !os.IsNotExist(err) {
		t.Errorf("a server wrote files into the working directory: %v", err)
	}
}
