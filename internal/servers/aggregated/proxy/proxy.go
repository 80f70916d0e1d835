// Package proxy answers: how does a user of the control plane talk to the API
// server of a member cluster through clusters/proxy?
//
// Invariants:
//   - The member sees the impersonator's token and the caller's name and groups,
//     whatever credentials or impersonation the request brought along.
//   - What the caller may do in the member is decided by the member.
//   - Connections are pooled for each cluster and given up when the way to the
//     cluster changes.
package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// ClusterGetter reads the Cluster of that name, or returns a not found error.
type ClusterGetter func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)

// SecretGetter reads a Secret of the control plane, or returns a not found error.
type SecretGetter func(ctx context.Context, namespace, name string) (*corev1.Secret, error)

// Proxy serves clusters/proxy.
type Proxy struct {
	clusters ClusterGetter
	secrets  SecretGetter
	members  *pool
}

var (
	_ rest.Storage   = &Proxy{}
	_ rest.Connecter = &Proxy{}
)

// New returns a proxy to the given clusters with the credentials in the given
// secrets.
func New(clusters ClusterGetter, secrets SecretGetter) *Proxy {
	return &Proxy{clusters: clusters, secrets: secrets, members: newPool()}
}

// New returns the options object of the subresource.
func (p *Proxy) New() runtime.Object { return &clusterv1alpha1.ClusterProxyOptions{} }

// Destroy gives up idle connections to all members.
func (p *Proxy) Destroy() { p.members.close() }

// Forget gives up the idle connections to a member that has left.
func (p *Proxy) Forget(cluster string) { p.members.forget(cluster) }

// ConnectMethods are the HTTP methods that are passed on.
func (p *Proxy) ConnectMethods() []string {
	return []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodHead, http.MethodOptions,
	}
}

// NewConnectOptions says that what follows /proxy/ in the URL becomes the path in
// the options.
func (p *Proxy) NewConnectOptions() (runtime.Object, bool, string) {
	return &clusterv1alpha1.ClusterProxyOptions{}, true, "path"
}

// Connect returns the handler that passes one request on to a cluster.
func (p *Proxy) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	proxyOptions, ok := options.(*clusterv1alpha1.ClusterProxyOptions)
	if !ok {
		return nil, fmt.Errorf("connecting to cluster %q: got options of type %T", name, options)
	}
	caller, ok := genericrequest.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("no user to act for in the cluster")
	}
	cluster, err := p.clusters(ctx, name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			p.Forget(name)
		}
		return nil, err
	}
	target, err := location(cluster, proxyOptions.Path)
	if err != nil {
		return nil, err
	}
	token, err := p.impersonatorToken(ctx, cluster)
	if err != nil {
		return nil, err
	}
	transport, err := p.transport(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return forward(target, transport, identity{token: token, caller: caller}, responder), nil
}

// transport returns the connections to a cluster.
func (p *Proxy) transport(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*transport, error) {
	caBundle, err := p.caBundle(ctx, cluster)
	if err != nil {
		return nil, err
	}
	transport, err := p.members.get(cluster.Name, routeTo(cluster, caBundle))
	if err != nil {
		return nil, unavailable(cluster, err)
	}
	return transport, nil
}

func forward(target *url.URL, transport *transport, as identity, responder rest.Responder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		location := *target
		// Upgrades go to the location as it is; other requests bring their query.
		location.RawQuery = req.URL.RawQuery
		handler := utilproxy.NewUpgradeAwareHandler(&location, transport.requests, false, false, utilproxy.NewErrorResponder(responder))
		handler.UpgradeTransport = transport.upgrades
		handler.UseLocationHost = true
		handler.ServeHTTP(w, as.put(req))
	})
}

// location joins the endpoint of a cluster and a path. An empty path stays empty,
// which redirects browsers to the same URL with a slash.
func location(cluster *clusterv1alpha1.Cluster, path string) (*url.URL, error) {
	if cluster.Spec.APIEndpoint == "" {
		return nil, unavailable(cluster, fmt.Errorf("spec.apiEndpoint is empty"))
	}
	endpoint, err := url.Parse(cluster.Spec.APIEndpoint)
	if err != nil {
		return nil, unavailable(cluster, fmt.Errorf("reading spec.apiEndpoint: %w", err))
	}
	endpoint.Path = strings.TrimSuffix(endpoint.Path, "/")
	if path != "" {
		endpoint.Path += "/" + strings.TrimPrefix(path, "/")
	}
	endpoint.RawPath = ""
	return endpoint, nil
}

// impersonatorToken reads the token that may impersonate anyone in the member.
func (p *Proxy) impersonatorToken(ctx context.Context, cluster *clusterv1alpha1.Cluster) (string, error) {
	ref := cluster.Spec.ImpersonatorSecretRef
	if ref == nil {
		return "", unavailable(cluster, fmt.Errorf("spec.impersonatorSecretRef is empty"))
	}
	secret, err := p.secrets(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return "", unavailable(cluster, fmt.Errorf("reading impersonator secret %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	token := secret.Data[clusterv1alpha1.SecretTokenKey]
	if len(token) == 0 {
		return "", unavailable(cluster, fmt.Errorf("impersonator secret %s/%s has no key %q", ref.Namespace, ref.Name, clusterv1alpha1.SecretTokenKey))
	}
	return string(token), nil
}

// caBundle reads the certificates that the member's API server is checked with;
// none means those of the system.
func (p *Proxy) caBundle(ctx context.Context, cluster *clusterv1alpha1.Cluster) ([]byte, error) {
	ref := cluster.Spec.SecretRef
	if ref == nil || cluster.Spec.InsecureSkipTLSVerification {
		return nil, nil
	}
	secret, err := p.secrets(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, unavailable(cluster, fmt.Errorf("reading secret %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	return secret.Data[clusterv1alpha1.SecretCADataKey], nil
}

func unavailable(cluster *clusterv1alpha1.Cluster, reason error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("no way to cluster %q: %v", cluster.Name, reason))
}

// identity is how a request presents itself to the member.
type identity struct {
	// token may impersonate.
	token string
	// caller is impersonated.
	caller user.Info
}
