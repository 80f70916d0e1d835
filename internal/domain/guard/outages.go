package guard

import (
	"slices"
	"time"
)

// maxOutages is the maximum number of past outages that are stored for a cluster.
const maxOutages = 16

// Outages holds the periods in which a cluster was observed as not ready. Periods without
// observations explain no deletion. The zero value has no observations.
type Outages struct {
	// ended are the past outages, oldest first.
	ended []outage
	// ongoingSince is the start of the present outage, or zero if there is none.
	ongoingSince time.Time
	hasObserved  bool
}

type outage struct{ began, ended time.Time }

// Observe records whether the cluster is ready now. since is the transition time of the condition.
// It may come from another clock, such as the clock of an agent, so an outage begins when Observe
// first sees it. An outage that is present in the first observation begins at since.
func (o Outages) Observe(ready bool, since, now time.Time) Outages {
	first := !o.hasObserved
	o.hasObserved = true
	switch {
	case !ready && o.ongoingSince.IsZero():
		o.ongoingSince = now
		if first {
			o.ongoingSince = since
		}
	case ready && !o.ongoingSince.IsZero():
		if now.Before(since) {
			since = now
		}
		o.ended = append(slices.Clone(o.ended[max(0, len(o.ended)-maxOutages+1):]), outage{began: o.ongoingSince, ended: since})
		o.ongoingSince = time.Time{}
	}
	return o
}

// Contains reports whether the cluster was not ready at that time.
func (o Outages) Contains(at time.Time) bool {
	return !o.ongoingSince.IsZero() && at.After(o.ongoingSince) || slices.ContainsFunc(o.ended, func(one outage) bool {
		return at.After(one.began) && at.Before(one.ended)
	})
}
