package proxy

import "sync"

// pool keeps the connections to clusters, at most one transport for each.
type pool struct {
	mu      sync.Mutex
	members map[string]pooled
}

type pooled struct {
	route     route
	transport *transport
}

func newPool() *pool {
	return &pool{members: map[string]pooled{}}
}

// get returns the transport to a cluster. A route other than last time replaces
// the transport; requests under way end on the old one.
func (p *pool) get(cluster string, r route) (*transport, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.members[cluster]
	if ok && known.route == r {
		return known.transport, nil
	}
	transport, err := newTransport(r)
	if err != nil {
		return nil, err
	}
	if ok {
		known.transport.requests.CloseIdleConnections()
	}
	p.members[cluster] = pooled{route: r, transport: transport}
	return transport, nil
}

// forget drops the transport to a cluster.
func (p *pool) forget(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.members[cluster]; ok {
		known.transport.requests.CloseIdleConnections()
		delete(p.members, cluster)
	}
}

// close drops all transports.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for cluster, known := range p.members {
		known.transport.requests.CloseIdleConnections()
		delete(p.members, cluster)
	}
}
