package proxy

import (
	"net/http"
	"net/url"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Budgets are how many requests may be under way at once. A budget that is used up
// answers 429 and says when to try again.
type Budgets struct {
	// Requests is for those to one member that are answered at once, AllRequests for
	// those to all members together.
	Requests, AllRequests int
	// Lasting is for those to one member that last, which are watches and logs,
	// AllLasting for those to all members together. Terminals and port forwards count
	// among AllLasting, and have a budget of their own for each member.
	Lasting, AllLasting int
}

// DefaultBudgets let a hundred users have twenty watches each in one member, and leave
// to each member a fifth of all.
func DefaultBudgets() Budgets {
	return Budgets{Requests: 400, AllRequests: 2000, Lasting: maxLasting, AllLasting: 5 * maxLasting}
}

// places are the budgets of all members together.
type places struct{ requests, lasting chan struct{} }

func newPlaces(of Budgets) places {
	return places{requests: make(chan struct{}, of.AllRequests), lasting: make(chan struct{}, of.AllLasting)}
}

// enter takes a place for a request in the budgets of its member and of all, and
// returns how to give both back.
func (w *way) enter(req *http.Request, target *url.URL, upgrade bool) (leave func(), err error) {
	own, all, what := w.member.requests, w.all.requests, "requests"
	switch {
	case upgrade:
		own, all, what = w.member.upgrades, w.all.lasting, "streams"
	case lasting(req, w.info(&http.Request{Method: req.Method, URL: target})):
		own, all, what = w.member.lasting, w.all.lasting, "watches and logs"
	}
	leaveOwn, ok := enter(own)
	if !ok {
		return nil, crowded(w.cluster, cap(own), what)
	}
	leaveAll, ok := enter(all)
	if !ok {
		leaveOwn()
		return nil, crowdedAll(cap(all), what)
	}
	return func() { leaveAll(); leaveOwn() }, nil
}

// crowdedAll is the answer when all members together have as much under way as may be.
func crowdedAll(limit int, what string) error {
	return soon(failure(http.StatusTooManyRequests, "TooManyRequests",
		"%d requests of the budget for %s are under way to all clusters together, which is the limit of this server: end some, or try again later", limit, what))
}

// proxyPath is where the API of a member begins.
func proxyPath(cluster *clusterv1alpha1.Cluster) string {
	return "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/" + cluster.Name + "/proxy"
}
