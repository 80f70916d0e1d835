package memberproxy

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// SetTimeouts sets all of the proxy's timeouts.
func (p *Proxy) SetTimeouts(silence time.Duration) {
	p.timeouts = timeouts{idle: silence, errorBody: silence, halfClosed: silence, lookup: silence, list: 3 * silence, clientRead: silence}
}

// SetLookupTimeout sets the timeouts for requests to all clusters.
func (p *Proxy) SetLookupTimeout(lookup time.Duration) {
	p.timeouts.lookup, p.timeouts.list = lookup, 3*lookup
}

// SetErrorBodyTimeout sets the timeout for the body of an error response to an upgrade.
func (p *Proxy) SetErrorBodyTimeout(refusal time.Duration) { p.timeouts.errorBody = refusal }

// MemoryLimits limit the memory of responses to requests to all clusters, in bytes.
type MemoryLimits struct{ Lookup, Member, Request, PerMember, All int64 }

// SetMemoryLimits sets those limits that are not 0, and how long requests wait for memory.
func (p *Proxy) SetMemoryLimits(given MemoryLimits, wait time.Duration) {
	room := defaultMemoryLimits
	room.wait = wait
	for bound, bytes := range map[*int64]int64{
		&room.lookup: given.Lookup, &room.member: given.Member, &room.request: given.Request, &room.perMember: given.PerMember, &room.all: given.All,
	} {
		if bytes != 0 {
			*bound = bytes
		}
	}
	p.setMemoryLimits(room)
}

// IsAllMemoryFree reports whether no memory is reserved.
func (p *Proxy) IsAllMemoryFree() bool {
	if !p.responseMemory.TryAcquire(p.memory.all) {
		return false
	}
	p.responseMemory.Release(p.memory.all)
	return true
}

// These aliases give external tests access to unexported functions.
var (
	FilterRequestHeader = filterRequestHeader
	ForwardedHeaders    = forwardedHeaders
)

// MaxUpgrades is the maximum number of streams to each member.
const MaxUpgrades = maxUpgrades

// Send sends a request to a member through the given transport.
func (p *Proxy) Send(cluster *clusterv1alpha1.Cluster, transport http.RoundTripper, req *http.Request) (*http.Response, error) {
	client, err := p.newClient(req.Context(), cluster, &user.DefaultInfo{})
	if err != nil {
		return nil, err
	}
	c, err := client.newCall(req.Method, req.URL.Path, req.URL, false)
	if err != nil {
		return nil, err
	}
	return c.send(transport, req)
}

// CompleteBody returns the body of a response to a request with the given context.
func CompleteBody(request context.Context, body io.ReadCloser) io.ReadCloser {
	return completeBody{body, request}
}

// ErrIdle is the cause with which requests are canceled if the member sends no data.
var ErrIdle = errIdle

// JoinURL returns the URL to which the request is sent.
func JoinURL(endpoint *url.URL, path string, request *url.URL) *url.URL {
	return joinURL(endpoint, path, request)
}

// AcquireUpgrades acquires slots for streams to the cluster. release releases these slots.
func (p *Proxy) AcquireUpgrades(ctx context.Context, cluster *clusterv1alpha1.Cluster, count int) (release func()) {
	client, err := p.newClient(ctx, cluster, &user.DefaultInfo{})
	if err != nil {
		panic(err)
	}
	for range count {
		client.member.upgrades <- struct{}{}
	}
	return func() {
		for range count {
			<-client.member.upgrades
		}
	}
}
