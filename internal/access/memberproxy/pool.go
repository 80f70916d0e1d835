package memberproxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"karmada.io/karmada/internal/access/agentaddress"
)

// errMemberRemoved is the cause with which requests to a removed member are canceled.
var errMemberRemoved = errors.New("the cluster was removed, or the server stops")

// pool contains the connections to clusters. The connections to a cluster have the settings of the
// last request to this cluster.
type pool struct {
	mu      sync.Mutex
	members map[string]*member
	closed  bool
	budgets Budgets
	// guard checks the addresses that agents choose.
	guard *agentaddress.Guard
	// memoryPerMember limits the bytes of responses of one member to requests to all clusters.
	memoryPerMember int64
}

// member contains the connections to one cluster.
type member struct {
	settings  connectionSettings
	transport *transport
	// ctx ends when the member is removed. All requests to the member end with it.
	ctx    context.Context //nolint:containedctx // connections outlive single requests
	cancel context.CancelCauseFunc
	// requests, longRunning and upgrades have a slot for each request in progress.
	requests, longRunning, upgrades chan struct{}
	// responseMemory limits the bytes of the member's responses to requests to all clusters.
	responseMemory *semaphore.Weighted
}

func newPool(budgets Budgets, guard *agentaddress.Guard) *pool {
	return &pool{members: map[string]*member{}, budgets: budgets, guard: guard}
}

// get returns the connections to a cluster. If the settings have changed, it opens new
// connections, and requests in progress finish on the old connections.
func (p *pool) get(cluster string, r connectionSettings) (*member, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errMemberRemoved
	}
	known, ok := p.members[cluster]
	if ok && known.settings == r {
		return known, nil
	}
	transport, err := newTransport(r, p.guard)
	if err != nil {
		return nil, err
	}
	created := &member{settings: r, transport: transport}
	if ok {
		// The budgets are kept when the settings change.
		created.requests, created.longRunning, created.upgrades = known.requests, known.longRunning, known.upgrades
		created.responseMemory = known.responseMemory
		known.transport.closeIdle()
		created.ctx, created.cancel = known.ctx, known.cancel
	} else {
		created.requests, created.longRunning = make(chan struct{}, p.budgets.Requests), make(chan struct{}, p.budgets.LongRunning)
		created.upgrades = make(chan struct{}, maxUpgrades)
		created.responseMemory = semaphore.NewWeighted(p.memoryPerMember)
		created.ctx, created.cancel = context.WithCancelCause(context.Background())
	}
	p.members[cluster] = created
	return created, nil
}

// remove cancels all requests to a cluster and closes its connections.
func (p *pool) remove(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.members[cluster]; ok {
		known.close()
		delete(p.members, cluster)
	}
}

// close removes all clusters. The pool cannot be used afterwards.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for cluster, known := range p.members {
		known.close()
		delete(p.members, cluster)
	}
}

func (p *pool) memberNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.members))
}

func (m *member) close() {
	m.cancel(errMemberRemoved)
	m.transport.closeIdle()
}

// tryAcquire acquires a slot and returns the function that releases it. ok is false if there is
// no free slot.
func tryAcquire(slots chan struct{}) (release func(), ok bool) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, true
	default:
		return nil, false
	}
}
