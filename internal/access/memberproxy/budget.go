package memberproxy

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/pflag"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Budgets limit the number of concurrent requests to members. If a budget is exhausted, further
// requests get the status 429 with Retry-After.
type Budgets struct {
	// Requests limits the short requests to one member. AllRequests limits the short requests to
	// all members together.
	Requests, AllRequests int
	// LongRunning limits the long-running requests (watches and logs) to one member. AllLongRunning
	// limits the long-running requests to all members together. Terminals and port forwards count
	// toward AllLongRunning, but each member has a separate budget for them.
	LongRunning, AllLongRunning int
}

// DefaultBudgets returns budgets for 100 users with 20 watches each in one member. One member can
// use one fifth of the shared budgets.
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

// Validate returns an error that names the flags if a budget allows no request.
func (b *Budgets) Validate() error {
	if min(b.Requests, b.AllRequests, b.LongRunning, b.AllLongRunning) < 1 {
		return errors.New("--proxy-requests-per-cluster, --proxy-requests, --proxy-watches-per-cluster and --proxy-watches must be at least 1")
	}
	return nil
}

// sharedBudgets are the budgets of all members together.
type sharedBudgets struct{ requests, longRunning chan struct{} }

func newSharedBudgets(budgets Budgets) sharedBudgets {
	return sharedBudgets{requests: make(chan struct{}, budgets.AllRequests), longRunning: make(chan struct{}, budgets.AllLongRunning)}
}

// acquireSlots acquires a slot in the budget of the member and a slot in the shared budget.
// release releases both slots.
func (m *memberClient) acquireSlots(req *http.Request, target *url.URL, upgrade bool) (release func(), err error) {
	memberSlots, sharedSlots, budget := m.member.requests, m.sharedBudgets.requests, "requests"
	switch {
	case upgrade:
		memberSlots, sharedSlots, budget = m.member.upgrades, m.sharedBudgets.longRunning, "streams"
	case isLongRunning(req, m.requestInfo(&http.Request{Method: req.Method, URL: target})):
		memberSlots, sharedSlots, budget = m.member.longRunning, m.sharedBudgets.longRunning, "watches and logs"
	}
	releaseMember, ok := tryAcquire(memberSlots)
	if !ok {
		return nil, memberBudgetExceeded(m.cluster, cap(memberSlots), budget)
	}
	releaseShared, ok := tryAcquire(sharedSlots)
	if !ok {
		releaseMember()
		return nil, serverBudgetExceeded(cap(sharedSlots), budget)
	}
	return func() { releaseShared(); releaseMember() }, nil
}

// serverBudgetExceeded returns the error for an exhausted budget that all members share.
func serverBudgetExceeded(limit int, budget string) error {
	return withRetryAfter(newStatusError(http.StatusTooManyRequests, "TooManyRequests",
		"%d requests of the budget for %s are in progress for all clusters together, which is the limit of this server: end some, or try again later", limit, budget))
}

// proxyPath is the path of the proxy subresource of a cluster.
func proxyPath(cluster *clusterv1alpha1.Cluster) string {
	return "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/" + cluster.Name + "/proxy"
}
