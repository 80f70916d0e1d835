// Package proxy answers: how does a user of the control plane talk to the API
// server of a member cluster through clusters/proxy, or to those of all clusters?
//
// Invariants:
//   - The member sees the impersonator's token and the caller's name and groups,
//     whatever credentials or impersonation the request brought along.
//   - What the caller may do in the member is decided by the member.
//   - A path never leads out of the endpoint of its cluster.
//   - Connections are pooled for each cluster, bounded in number, and given up when
//     the way to the cluster changes or the cluster leaves.
//   - Whatever goes wrong between here and the member is told as a Status that
//     names the cluster and what helps. Nothing but watches, logs and terminals may
//     be silent for long.
package proxy

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	clientrest "k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// All is the name that stands for all clusters.
const All = "*"

// ClusterGetter reads the Cluster of that name, or returns a not found error.
type ClusterGetter func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)

// ClusterLister reads all Clusters.
type ClusterLister func(ctx context.Context) ([]clusterv1alpha1.Cluster, error)

// SecretGetter reads a Secret of the control plane, or returns a not found error.
type SecretGetter func(ctx context.Context, namespace, name string) (*corev1.Secret, error)

// Sources are where the proxy learns what it needs.
type Sources struct {
	Cluster ClusterGetter
	// Clusters is asked for requests to all clusters.
	Clusters ClusterLister
	// Secret may answer from a cache.
	Secret SecretGetter
	// FreshSecret does not; it is asked when a member refuses what Secret said. Nil
	// means that Secret is always fresh.
	FreshSecret SecretGetter
	// Karmada answers requests to all clusters that are about no resource, such as
	// discovery. Nil means that nobody does.
	Karmada *clientrest.Config
	// Budgets bound the requests under way; the zero value is DefaultBudgets.
	Budgets Budgets
}

// Proxy serves clusters/proxy.
type Proxy struct {
	from    Sources
	members *pool
	karmada *karmadaServer
	limits  limits
	// all are the budgets of all members together.
	all places
	// room bounds what members answer to requests to all clusters, answers is the part
	// that all such requests share.
	room    room
	answers *semaphore.Weighted
}

var (
	_ rest.Storage   = &Proxy{}
	_ rest.Connecter = &Proxy{}
)

// New returns a proxy to the clusters that the sources know.
func New(from Sources) (*Proxy, error) {
	if from.FreshSecret == nil {
		from.FreshSecret = from.Secret
	}
	if from.Budgets == (Budgets{}) {
		from.Budgets = DefaultBudgets()
	}
	karmada, err := newKarmadaServer(from.Karmada)
	if err != nil {
		return nil, fmt.Errorf("preparing the way to the Karmada API server: %w", err)
	}
	p := &Proxy{from: from, members: newPool(from.Budgets), all: newPlaces(from.Budgets), karmada: karmada, limits: standardLimits}
	p.provide(defaultRoom)
	return p, nil
}

// provide sets the room for answers, before the first request.
func (p *Proxy) provide(room room) {
	p.room, p.answers = room, semaphore.NewWeighted(room.all)
	p.members.answers = room.perMember
}

// New returns the options object of the subresource.
func (p *Proxy) New() runtime.Object { return &clusterv1alpha1.ClusterProxyOptions{} }

// Destroy ends everything under way to all members.
func (p *Proxy) Destroy() {
	p.members.close()
	p.karmada.close()
}

// Forget ends everything under way to a member that has left.
func (p *Proxy) Forget(cluster string) { p.members.forget(cluster) }

// Sweep forgets members whose Cluster is gone, which another server may have
// deleted.
func (p *Proxy) Sweep(ctx context.Context) {
	for _, name := range p.members.names() {
		if _, err := p.from.Cluster(ctx, name); apierrors.IsNotFound(err) {
			p.Forget(name)
		}
	}
}

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

// Connect returns the handler that passes one request on to a cluster, or to all.
func (p *Proxy) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	proxyOptions, ok := options.(*clusterv1alpha1.ClusterProxyOptions)
	if !ok {
		return nil, fmt.Errorf("connecting to cluster %q: got options of type %T", name, options)
	}
	caller, ok := genericrequest.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("no user to act for in the cluster")
	}
	if err := checkPath(proxyOptions.Path); err != nil {
		return nil, err
	}
	if name == All {
		return &everywhere{proxy: p, path: proxyOptions.Path, caller: caller, responder: responder}, nil
	}
	cluster, err := p.from.Cluster(ctx, name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			p.Forget(name)
		}
		return nil, err
	}
	way, err := p.way(ctx, cluster, caller)
	if err != nil {
		return nil, err
	}
	return &passage{way: way, path: proxyOptions.Path, responder: responder}, nil
}

// way is how requests of one caller get to one member.
type way struct {
	cluster *clusterv1alpha1.Cluster
	member  *member
	// token may impersonate, caller is impersonated.
	token  string
	caller user.Info
	// fresh reads the token again, past all caches.
	fresh  func(ctx context.Context) (string, error)
	limits limits
	// all are the budgets of all members together.
	all places
	// client is where an answer goes as it comes; nil where it is read as a whole.
	client http.ResponseWriter
}

// way opens the way to a cluster. Nothing is sent yet.
func (p *Proxy) way(ctx context.Context, cluster *clusterv1alpha1.Cluster, caller user.Info) (*way, error) {
	if cluster.Spec.APIEndpoint == "" {
		return nil, noEndpoint(cluster)
	}
	token, err := impersonatorToken(ctx, cluster, p.from.Secret)
	if err != nil {
		return nil, err
	}
	caBundle, err := caBundle(ctx, cluster, p.from.Secret)
	if err != nil {
		return nil, err
	}
	member, err := p.members.get(cluster.Name, routeTo(cluster, caBundle))
	if err != nil {
		return nil, unavailable(cluster, err)
	}
	fresh := func(ctx context.Context) (string, error) { return impersonatorToken(ctx, cluster, p.from.FreshSecret) }
	return &way{cluster: cluster, member: member, token: token, caller: caller, fresh: fresh, limits: p.limits, all: p.all}, nil
}
