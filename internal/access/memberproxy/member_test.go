package memberproxy_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/domain/work"
)

// fixture is a control plane with one cluster and its Secrets. Tests change the cluster and the Secrets
// between requests.
type fixture struct {
	cluster *clusterv1alpha1.Cluster
	// others are additional clusters, which use the Secrets of m1.
	others  []*clusterv1alpha1.Cluster
	secrets map[string]*corev1.Secret
	// works contains the control plane's Works, by namespace/name. worksErr is returned for each Work
	// that is read.
	works    map[string]*workv1alpha1.Work
	worksErr error
	// stale contains the Secrets in an outdated cache.
	stale map[string]*corev1.Secret
	// caller is the user who sends the requests. The default is alice.
	caller user.Info
	proxy  *memberproxy.Proxy
	// budgets are the proxy's budgets. The zero value selects the defaults.
	budgets memberproxy.Budgets
	// addresses specifies to which addresses agents may make the proxy connect.
	addresses agentaddress.Options
}

// newFixture registers a member that serves handler over TLS.
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
		works: map[string]*workv1alpha1.Work{},
	}
	f.caller = &user.DefaultInfo{
		Name: "alice", UID: "42", Groups: []string{"dev", "ops", user.AllAuthenticated, user.AllUnauthenticated},
		Extra: map[string][]string{"scope": {"all"}},
	}
	f.createProxy(t, nil)
	return f, member
}

// createProxy creates the proxy.
func (f *fixture) createProxy(t *testing.T, karmada *rest.Config) {
	t.Helper()
	var err error
	f.proxy, err = memberproxy.New(memberproxy.Sources{
		Cluster: f.get,
		Clusters: func(context.Context) ([]clusterv1alpha1.Cluster, error) {
			all := []clusterv1alpha1.Cluster{*f.cluster}
			for _, other := range f.others {
				all = append(all, *other)
			}
			return all, nil
		},
		Secret: func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
			if secret, ok := f.stale[name]; ok {
				return secret, nil
			}
			return f.secret(ctx, namespace, name)
		},
		FreshSecret: f.secret,
		Work:        f.work,
		Karmada:     karmada,
		Budgets:     f.budgets, AgentAddresses: f.addresses,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.proxy.Destroy)
}

func (f *fixture) get(_ context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	for _, cluster := range append(f.others, f.cluster) {
		if cluster != nil && cluster.Name == name {
			return cluster.DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(clusterv1alpha1.Resource("clusters"), name)
}

func (f *fixture) secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	if secret, ok := f.secrets[name]; ok {
		return secret, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

func (f *fixture) work(_ context.Context, namespace, name string) (*workv1alpha1.Work, error) {
	if found, ok := f.works[namespace+"/"+name]; ok || f.worksErr != nil {
		return found, f.worksErr
	}
	return nil, apierrors.NewNotFound(workv1alpha1.Resource("works"), name)
}

// deliver stores the Work with which the control plane delivers an object to the cluster.
func (f *fixture) deliver(cluster, apiVersion, kind, namespace, name string) {
	delivered := &workv1alpha1.Work{}
	delivered.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q}}`, apiVersion, kind, namespace, name),
	}}}
	f.works[work.ExecutionNamespace(cluster)+"/"+work.Name(kind, namespace, name)] = delivered
}

func caOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// responder writes the proxy's errors as an API server does.
type responder struct{ w http.ResponseWriter }

func (r responder) Object(code int, _ runtime.Object) { r.w.WriteHeader(code) }

func (r responder) Error(err error) {
	code, retryAfter := http.StatusInternalServerError, 0
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code = int(status.Status().Code)
		if details := status.Status().Details; details != nil {
			retryAfter = int(details.RetryAfterSeconds)
		}
	}
	if retryAfter > 0 {
		r.w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	http.Error(r.w, err.Error(), code)
}

// ServeHTTP acts as the API server that contains the proxy: it authenticates the caller and splits the
// path at /proxy. Requests below /everywhere are sent to all clusters.
func (f *fixture) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name, path := "m1", ""
	if strings.HasPrefix(req.URL.Path, "/everywhere") {
		name = memberproxy.AllClusters
	}
	if parts := strings.SplitN(req.URL.Path, "/", 3); len(parts) == 3 && parts[2] != "" {
		path = "/" + parts[2]
	}
	ctx := genericrequest.WithUser(req.Context(), f.caller)
	handler, err := f.proxy.Connect(ctx, name, &clusterv1alpha1.ClusterProxyOptions{Path: path}, responder{w})
	if err != nil {
		responder{w}.Error(err)
		return
	}
	handler.ServeHTTP(w, req.WithContext(ctx))
}

// front serves the fixture over the network, which upgrades require.
func (f *fixture) front(t *testing.T) *httptest.Server {
	t.Helper()
	front := httptest.NewServer(f)
	t.Cleanup(front.Close)
	return front
}
