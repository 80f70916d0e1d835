package proxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"
)

// errClosed ends what is under way to a member that has left.
var errClosed = errors.New("the cluster is not a member any more, or the server stops")

// pool keeps the connections to clusters, those over one route for each.
type pool struct {
	mu      sync.Mutex
	members map[string]*member
	closed  bool
	budgets Budgets
	// answers is how many bytes the answers of one member to requests to all clusters
	// may take.
	answers int64
}

// member is the connections to one cluster.
type member struct {
	route     route
	transport *transport
	// life ends when the member leaves, and with it all that is under way.
	life context.Context
	end  context.CancelCauseFunc
	// requests, lasting and upgrades hold a place for each one under way.
	requests, lasting, upgrades chan struct{}
	// answers is the room for its answers to requests to all clusters, in bytes.
	answers *semaphore.Weighted
}

func newPool(budgets Budgets) *pool {
	return &pool{members: map[string]*member{}, budgets: budgets}
}

// get returns the connections to a cluster. A route other than last time replaces
// them; requests under way end on the old ones.
func (p *pool) get(cluster string, r route) (*member, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	known, ok := p.members[cluster]
	if ok && known.route == r {
		return known, nil
	}
	transport, err := newTransport(r)
	if err != nil {
		return nil, err
	}
	made := &member{route: r, transport: transport}
	if ok {
		// The budgets are the member's, whatever the route.
		made.requests, made.lasting, made.upgrades = known.requests, known.lasting, known.upgrades
		made.answers = known.answers
		known.transport.closeIdle()
		made.life, made.end = known.life, known.end
	} else {
		made.requests, made.lasting = make(chan struct{}, p.budgets.Requests), make(chan struct{}, p.budgets.Lasting)
		made.upgrades = make(chan struct{}, maxUpgrades)
		made.answers = semaphore.NewWeighted(p.answers)
		made.life, made.end = context.WithCancelCause(context.Background())
	}
	p.members[cluster] = made
	return made, nil
}

// forget ends all that is under way to a cluster.
func (p *pool) forget(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.members[cluster]; ok {
		known.leave()
		delete(p.members, cluster)
	}
}

// close forgets all clusters, for good.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for cluster, known := range p.members {
		known.leave()
		delete(p.members, cluster)
	}
}

func (p *pool) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.members))
}

func (m *member) leave() {
	m.end(errClosed)
	m.transport.closeIdle()
}

// enter takes a place among those under way, and tells how to give it back. It
// reports whether there was one.
func enter(places chan struct{}) (leave func(), ok bool) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	default:
		return nil, false
	}
}
