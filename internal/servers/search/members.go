package search

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"

	"karmada.io/karmada/internal/access/memberproxy"
)

// sweepPeriod is the interval at which the server closes connections to deleted clusters, in addition to the
// clusters' events.
const sweepPeriod = 30 * time.Second

// callerMembers sends requests to members with the identity of the caller.
type callerMembers struct {
	proxy    *memberproxy.Proxy
	clusters memberproxy.ClusterGetter
}

// newCallerMembers returns callerMembers, and the task that watches the credentials of clusters.
func newCallerMembers(from sources, karmada *karmadaCache) (*callerMembers, func(context.Context), error) {
	cached, fresh, start := memberproxy.NewSecretGetters(from.karmadaClient)
	proxy, err := memberproxy.New(memberproxy.Sources{
		Cluster: karmada.cluster, Clusters: karmada.allClusters, Secret: cached, FreshSecret: fresh,
		Karmada: from.karmada, Budgets: from.options.Budgets, AgentAddresses: from.options.AgentAddresses,
	})
	if err != nil {
		return nil, nil, err
	}
	c := &callerMembers{proxy: proxy, clusters: karmada.cluster}
	return c, func(ctx context.Context) {
		start(ctx)
		wait.UntilWithContext(ctx, proxy.RemoveDeletedMembers, sweepPeriod)
	}, nil
}

func (c *callerMembers) client(ctx context.Context, cluster string, caller user.Info) (*memberproxy.Client, error) {
	found, err := c.clusters(ctx, cluster)
	if err != nil {
		return nil, err // it names the cluster
	}
	return c.proxy.Client(ctx, found, caller)
}

// Do sends a request of a caller to a cluster.
func (c *callerMembers) Do(ctx context.Context, cluster string, caller user.Info, request memberproxy.Request) (*http.Response, error) {
	client, err := c.client(ctx, cluster, caller)
	if err != nil {
		return nil, err
	}
	return client.Do(ctx, request)
}

// Handler returns the handler that forwards a request of a caller to a path of a cluster.
func (c *callerMembers) Handler(ctx context.Context, cluster string, caller user.Info, path string, responder rest.Responder) (http.Handler, error) {
	client, err := c.client(ctx, cluster, caller)
	if err != nil {
		return nil, err
	}
	return client.Handler(path, responder), nil
}

// ForwardToKarmada forwards a request of a caller to the Karmada API server.
func (c *callerMembers) ForwardToKarmada(w http.ResponseWriter, req *http.Request, path string, caller user.Info, responder rest.Responder) {
	c.proxy.ForwardToKarmada(w, req, path, caller, responder)
}

// ownMembers sends requests to members with the permissions of this server. It is used if the callers'
// permissions in members do not matter.
type ownMembers struct{ *callerMembers }

// Do sends a request to a cluster. The caller is ignored.
func (o ownMembers) Do(ctx context.Context, cluster string, _ user.Info, request memberproxy.Request) (*http.Response, error) {
	found, err := o.clusters(ctx, cluster)
	if err != nil {
		return nil, err // it names the cluster
	}
	client, err := o.proxy.OwnClient(ctx, found)
	if err != nil {
		return nil, err
	}
	return client.Do(ctx, request)
}
