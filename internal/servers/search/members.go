package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	clientrest "k8s.io/client-go/rest"

	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/memberproxy"
)

// sweepPeriod is the interval at which the server closes connections of callers to clusters that were
// deleted, in addition to the events of these clusters.
const sweepPeriod = 30 * time.Second

// callerMembers sends the requests of callers to members, with the identity of the caller.
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

// ownMembers sends requests to members with the rights of this server. It is used if the rights of
// callers in members do not decide.
type ownMembers struct {
	members  *member.Clusters
	clusters memberproxy.ClusterGetter

	mu   sync.Mutex
	open map[string]*ownConnection
}

// ownConnection is the connection to one member.
type ownConnection struct {
	member *member.Member
	client *http.Client
	base   *url.URL
}

func newOwnMembers(members *member.Clusters, clusters memberproxy.ClusterGetter) *ownMembers {
	return &ownMembers{members: members, clusters: clusters, open: map[string]*ownConnection{}}
}

// Do sends a request to a cluster. The caller is ignored.
func (o *ownMembers) Do(ctx context.Context, cluster string, _ user.Info, request memberproxy.Request) (*http.Response, error) {
	connection, err := o.connection(ctx, cluster)
	if err != nil {
		return nil, err
	}
	target := connection.base.JoinPath(request.Path)
	target.RawQuery = request.Query.Encode()
	out, err := http.NewRequestWithContext(ctx, request.Method, target.String(), bytes.NewReader(request.Body))
	if err != nil {
		return nil, fmt.Errorf("creating a request for cluster %q: %w", cluster, err)
	}
	if request.Header != nil {
		out.Header = request.Header.Clone()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(cmp.Or(request.Idle, time.Minute), func() { cancel(errIdle) })
	resp, err := connection.client.Do(out.WithContext(ctx))
	timer.Stop()
	if err != nil {
		if context.Cause(ctx) == errIdle { //nolint:errorlint // only this function sets the cause
			err = errIdle
		}
		cancel(nil)
		return nil, fmt.Errorf("cluster %q: %w", cluster, err)
	}
	resp.Body = memberproxy.OnClose(resp.Body, func() { cancel(nil) })
	return resp, nil
}

var errIdle = errors.New("the member sent no data in time: its API server hangs or is overloaded")

// connection returns the connection to a cluster. It sends no request.
func (o *ownMembers) connection(ctx context.Context, name string) (*ownConnection, error) {
	cluster, err := o.clusters(ctx, name)
	if err != nil {
		return nil, err // it names the cluster
	}
	opened, err := o.members.GetForCluster(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("connecting to cluster %q: %w", name, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if existing := o.open[name]; existing != nil && existing.member == opened {
		return existing, nil
	}
	config := opened.Config()
	config.Timeout = 0 // the context of the request limits it
	client, err := clientrest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the HTTP client for cluster %q: %w", name, err)
	}
	// A member must not send the requests of this server to other servers.
	client = &http.Client{Transport: client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	base, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: parsing its address: %w", name, err)
	}
	o.open[name] = &ownConnection{member: opened, client: client, base: base}
	return o.open[name], nil
}

// remove forgets a cluster that is gone.
func (o *ownMembers) remove(cluster string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, cluster)
}
