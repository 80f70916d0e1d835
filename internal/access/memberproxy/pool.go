package memberproxy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
	"karmada.io/karmada/internal/access/fanout"
)

// maxLongRunning and maxUpgrades limit the long-running requests to one member, and thereby the
// connections. Watches share connections over HTTP/2, but each upgrade has its own connection. 100
// users with 20 watches each do not exceed the limits.
const (
	maxLongRunning = 2000
	maxUpgrades    = 500
)

// Budgets limit the number of concurrent requests to members. If a budget is exhausted, further
// requests fail with status 429 and Retry-After.
type Budgets struct {
	// Requests limits the short requests to one member, and AllRequests those to all members together.
	Requests, AllRequests int
	// LongRunning limits the long-running requests (watches and logs) to one member, and AllLongRunning
	// those to all members together. Terminals and port forwards count toward AllLongRunning, but each
	// member has a separate budget for them.
	LongRunning, AllLongRunning int
}

// DefaultBudgets returns budgets for 100 users with 20 watches each in one member. One member can use
// one fifth of the shared budgets.
func DefaultBudgets() Budgets {
	return Budgets{Requests: 400, AllRequests: 2000, LongRunning: maxLongRunning, AllLongRunning: 5 * maxLongRunning}
}

// AddFlags adds the flags that set the budgets.
func (b *Budgets) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&b.Requests, "proxy-requests-per-cluster", b.Requests,
		"Maximum concurrent requests through clusters/proxy to one cluster, except watches, logs and streams.")
	flags.IntVar(&b.AllRequests, "proxy-requests", b.AllRequests,
		"Maximum concurrent requests through clusters/proxy to all clusters together, except watches, logs and streams.")
	flags.IntVar(&b.LongRunning, "proxy-watches-per-cluster", b.LongRunning,
		"Maximum concurrent watches and logs through clusters/proxy to one cluster.")
	flags.IntVar(&b.AllLongRunning, "proxy-watches", b.AllLongRunning,
		"Maximum concurrent watches, logs and streams through clusters/proxy to all clusters together.")
}

// Validate returns an error that names the flags if a budget permits no request.
func (b *Budgets) Validate() error {
	if min(b.Requests, b.AllRequests, b.LongRunning, b.AllLongRunning) < 1 {
		return errors.New("--proxy-requests-per-cluster, --proxy-requests, --proxy-watches-per-cluster and --proxy-watches must be at least 1")
	}
	return nil
}

// slots are channels that contain one element for each request in progress. Their capacity is the
// budget.
type slots struct{ requests, longRunning, upgrades chan struct{} }

func newSlots(requests, longRunning int) slots {
	return slots{make(chan struct{}, requests), make(chan struct{}, longRunning), make(chan struct{}, maxUpgrades)}
}

// acquireSlots acquires a slot in the member's budget and a slot in the shared budget. release releases
// both.
func (c *call) acquireSlots() (release func(), err error) {
	memberSlots, sharedSlots, budget := c.member.requests, c.shared.requests, "requests"
	switch {
	case c.isUpgrade:
		memberSlots, sharedSlots, budget = c.member.upgrades, c.shared.longRunning, "streams"
	case c.isLongRunning:
		memberSlots, sharedSlots, budget = c.member.longRunning, c.shared.longRunning, "watches and logs"
	}
	select {
	case memberSlots <- struct{}{}:
	default:
		return nil, newBudgetError("%d %s are in progress for cluster %q", cap(memberSlots), budget, c.cluster.Name)
	}
	select {
	case sharedSlots <- struct{}{}:
	default:
		<-memberSlots
		return nil, newBudgetError("%d requests of the budget for %s are in progress for all clusters together", cap(sharedSlots), budget)
	}
	return func() { <-sharedSlots; <-memberSlots }, nil
}

func newBudgetError(format string, args ...any) error {
	return fanout.WithRetryAfter(fanout.NewStatusError(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		format+", which is the limit of this server: end some, or try again later", args...))
}

// errMemberRemoved is the cause with which requests to a removed member are canceled.
var errMemberRemoved = errors.New("the cluster was removed, or the server stops")

// pool contains the connections to clusters. Each cluster's connections have the settings that the last
// request to the cluster used.
type pool struct {
	mu      sync.Mutex
	members map[string]*member
	closed  bool
	budgets Budgets
	// guard validates the addresses that agents choose.
	guard *agentaddress.Guard
	// memoryPerMember limits each member's responses to requests to all clusters, in bytes.
	memoryPerMember int64
}

// member contains the connections to one cluster.
type member struct {
	slots
	// key identifies the settings of the connections.
	key       string
	transport *transport
	// ctx ends when the member is removed. All requests to the member are then canceled.
	ctx    context.Context //nolint:containedctx // connections outlive single requests
	cancel context.CancelCauseFunc
	// responseMemory limits the member's responses to requests to all clusters, in bytes.
	responseMemory *semaphore.Weighted
}

// get returns the connections to the cluster. If the settings have changed, it opens new connections,
// and requests in progress finish on the old connections.
func (p *pool) get(cluster *clusterv1alpha1.Cluster, caBundle []byte) (*member, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errMemberRemoved
	}
	key := connectionKey(cluster, caBundle)
	known, found := p.members[cluster.Name]
	if found && known.key == key {
		return known, nil
	}
	transport, err := newTransport(cluster, caBundle, p.guard)
	if err != nil {
		return nil, err
	}
	created := &member{slots: newSlots(p.budgets.Requests, p.budgets.LongRunning), responseMemory: semaphore.NewWeighted(p.memoryPerMember)}
	if found {
		known.transport.closeIdle()
		*created = *known
	} else {
		created.ctx, created.cancel = context.WithCancelCause(context.Background())
	}
	created.key, created.transport = key, transport
	p.members[cluster.Name] = created
	return created, nil
}

// remove cancels all requests to the given clusters and closes their connections.
func (p *pool) remove(clusters ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cluster := range clusters {
		if known, found := p.members[cluster]; found {
			known.cancel(errMemberRemoved)
			known.transport.closeIdle()
			delete(p.members, cluster)
		}
	}
}

// close removes all clusters. The pool cannot be used afterwards.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.remove(p.memberNames()...)
}

func (p *pool) memberNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.members))
}
