// Package memberproxy forwards requests of control plane users to the API server of one member, or to
// the API servers of all members, through clusters/proxy.
//
// Invariants:
//   - The member receives the impersonator's token and the caller's name and groups. The request's own
//     credentials and impersonation headers are removed.
//   - The member authorizes the caller's request.
//   - A request's path never leaves its cluster's endpoint, and never leads to another proxy of the
//     control plane.
//   - A request for one object in all clusters is forwarded to the only cluster that returns an object
//     with the requested version, kind, namespace and name. A cluster that does not respond may have
//     the object. Therefore a write fails while a cluster does not respond, and an object that no other
//     cluster has is reported as unknown, not as not found.
//   - No member attracts a write by claiming to have an object. A write to all clusters requires a UID
//     in the response, and the Work with which the control plane delivers this object to this cluster.
//     Karmada does not record member objects' UIDs, but only the control plane writes Works. For all
//     other objects, such as a Deployment's Pods, the user has to name the cluster.
//   - Connections are pooled for each cluster and limited in number. They are closed when the
//     connection settings change or the cluster is removed.
//   - Errors between this process and the member are returned as a Status that names the cluster and
//     the remedy. Only watches, logs and terminals may send no data for a long time.
package memberproxy

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	clientrest "k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
)

// AllClusters is the cluster name that stands for all clusters.
const AllClusters = "*"

// ClusterGetter reads the Cluster with the given name, or returns a NotFound error.
type ClusterGetter func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)

// ClusterLister reads all Clusters.
type ClusterLister func(ctx context.Context) ([]clusterv1alpha1.Cluster, error)

// SecretGetter reads a Secret of the control plane, or returns a NotFound error.
type SecretGetter func(ctx context.Context, namespace, name string) (*corev1.Secret, error)

// Sources are the data sources and settings of the proxy.
type Sources struct {
	Cluster ClusterGetter
	// Clusters lists the clusters to which a request to all clusters is sent.
	Clusters ClusterLister
	// Secret may read from a cache.
	Secret SecretGetter
	// FreshSecret must not read from a cache. It is used when a member rejects the token that Secret
	// returned. If it is nil, Secret is used, which then must not read from a cache either.
	FreshSecret SecretGetter
	// Work reads the Works that prove which objects the control plane delivers to a cluster. If it is
	// nil, writes to all clusters fail.
	Work WorkGetter
	// Karmada is the client configuration for the Karmada API server, which serves requests that
	// address all clusters but no resource, such as discovery. If it is nil, such requests fail.
	Karmada *clientrest.Config
	// Budgets limit the concurrent requests. The zero value selects DefaultBudgets.
	Budgets Budgets
	// AgentAddresses specifies to which addresses agents may make this process connect.
	AgentAddresses agentaddress.Options
}

// Proxy implements the subresource clusters/proxy.
type Proxy struct {
	sources  Sources
	members  *pool
	karmada  *karmadaServer
	timeouts timeouts
	// shared are the slots that all members share.
	shared slots
	// memory limits members' responses to requests to all clusters. responseMemory is the memory that
	// all requests to all clusters share.
	memory         memoryLimits
	responseMemory *semaphore.Weighted
}

var (
	_ rest.Storage   = &Proxy{}
	_ rest.Connecter = &Proxy{}
)

// New returns a proxy to the clusters that the given sources return.
func New(sources Sources) (*Proxy, error) {
	if sources.FreshSecret == nil {
		sources.FreshSecret = sources.Secret
	}
	if sources.Budgets == (Budgets{}) {
		sources.Budgets = DefaultBudgets()
	}
	karmada, err := newKarmadaServer(sources.Karmada)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the Karmada API server: %w", err)
	}
	host := ""
	if sources.Karmada != nil {
		host = sources.Karmada.Host
	}
	p := &Proxy{
		sources:  sources,
		members:  &pool{members: map[string]*member{}, budgets: sources.Budgets, guard: agentaddress.NewGuard(sources.AgentAddresses, host)},
		shared:   newSlots(sources.Budgets.AllRequests, sources.Budgets.AllLongRunning),
		karmada:  karmada,
		timeouts: defaultTimeouts,
	}
	p.setMemoryLimits(defaultMemoryLimits)
	return p, nil
}

// setMemoryLimits sets the memory limits. It must be called before the first request.
func (p *Proxy) setMemoryLimits(limits memoryLimits) {
	p.memory, p.responseMemory = limits, semaphore.NewWeighted(limits.all)
	p.members.memoryPerMember = limits.perMember
}

// New returns an empty object of the subresource's options.
func (p *Proxy) New() runtime.Object { return &clusterv1alpha1.ClusterProxyOptions{} }

// Destroy cancels all requests to all members.
func (p *Proxy) Destroy() {
	p.members.close()
	p.karmada.close()
}

// RemoveMember cancels all requests to the member, which was removed.
func (p *Proxy) RemoveMember(cluster string) { p.members.remove(cluster) }

// RemoveDeletedMembers removes the members whose Cluster no longer exists. It is needed because another
// replica may have deleted the Cluster.
func (p *Proxy) RemoveDeletedMembers(ctx context.Context) {
	for _, name := range p.members.memberNames() {
		if _, err := p.sources.Cluster(ctx, name); apierrors.IsNotFound(err) {
			p.RemoveMember(name)
		}
	}
}

// ConnectMethods returns the HTTP methods that are forwarded.
func (p *Proxy) ConnectMethods() []string {
	return []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodHead, http.MethodOptions,
	}
}

// NewConnectOptions returns the options object, which gets the part of the URL after /proxy/ as its
// path.
func (p *Proxy) NewConnectOptions() (runtime.Object, bool, string) {
	return &clusterv1alpha1.ClusterProxyOptions{}, true, "path"
}

// Connect returns the handler that forwards one request to the named cluster or to all clusters.
func (p *Proxy) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	proxyOptions, ok := options.(*clusterv1alpha1.ClusterProxyOptions)
	if !ok {
		return nil, fmt.Errorf("connecting to cluster %q: got options of type %T", name, options)
	}
	caller, ok := genericrequest.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("no user to impersonate in the cluster")
	}
	if err := ValidatePath(proxyOptions.Path); err != nil {
		return nil, err
	}
	if name == AllClusters {
		return &allClustersHandler{proxy: p, path: proxyOptions.Path, caller: caller, responder: responder}, nil
	}
	return p.Handler(ctx, name, caller, proxyOptions.Path, responder)
}
