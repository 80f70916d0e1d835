package proxy_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/aggregated/proxy"
)

// fixture is a control plane with one cluster and its secrets; tests change them
// between requests.
type fixture struct {
	cluster *clusterv1alpha1.Cluster
	secrets map[string]*corev1.Secret
	proxy   *proxy.Proxy
}

// newFixture registers a member that answers with handler, over TLS.
func newFixture(t *testing.T, handler http.Handler) (*fixture, *httptest.Server) {
	t.Helper()
	member := httptest.NewUnstartedServer(handler)
	member.EnableHTTP2 = true
	member.StartTLS()
	t.Cleanup(member.Close)
	ref := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name}
	}
	f := &fixture{
		cluster: &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "m1"},
			Spec: clusterv1alpha1.ClusterSpec{
				APIEndpoint: member.URL, SecretRef: ref("m1"), ImpersonatorSecretRef: ref("m1-impersonator"),
			},
		},
		secrets: map[string]*corev1.Secret{
			"m1":              {Data: map[string][]byte{"caBundle": caOf(member)}},
			"m1-impersonator": {Data: map[string][]byte{"token": []byte("impersonator-token")}},
		},
	}
	f.proxy = proxy.New(
		func(_ context.Context, name string) (*clusterv1alpha1.Cluster, error) {
			if f.cluster.Name != name {
				return nil, apierrors.NewNotFound(clusterv1alpha1.Resource("clusters"), name)
			}
			return f.cluster.DeepCopy(), nil
		},
		func(_ context.Context, _, name string) (*corev1.Secret, error) {
			if secret, ok := f.secrets[name]; ok {
				return secret, nil
			}
			return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
		})
	t.Cleanup(f.proxy.Destroy)
	return f, member
}

func caOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// responder writes errors of the proxy as their status codes.
type responder struct{ w http.ResponseWriter }

func (r responder) Object(code int, _ runtime.Object) { r.w.WriteHeader(code) }

func (r responder) Error(err error) { http.Error(r.w, err.Error(), http.StatusBadGateway) }

// ServeHTTP is the API server around the proxy: it knows the caller and splits
// the path at /proxy/.
func (f *fixture) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := ""
	if len(req.URL.Path) > len("/proxy/") {
		path = req.URL.Path[len("/proxy/"):]
	}
	ctx := genericrequest.WithUser(req.Context(), &user.DefaultInfo{
		Name: "alice", UID: "42", Groups: []string{"dev", "ops", user.AllAuthenticated, user.AllUnauthenticated},
		Extra: map[string][]string{"scope": {"all"}},
	})
	handler, err := f.proxy.Connect(ctx, "m1", &clusterv1alpha1.ClusterProxyOptions{Path: path}, responder{w})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	handler.ServeHTTP(w, req.WithContext(ctx))
}

// front serves the fixture over the network, which upgrades need.
func (f *fixture) front(t *testing.T) *httptest.Server {
	t.Helper()
	front := httptest.NewServer(f)
	t.Cleanup(front.Close)
	return front
}
