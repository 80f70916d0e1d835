package guard

import (
	"slices"
	"time"
)

// keptOutages bounds how many outages of a cluster are remembered.
const keptOutages = 16

// Outages are the times in which a cluster was not ready, as far as they were observed.
// What was not observed explains nothing. The zero value has observed nothing.
type Outages struct {
	// over are those that ended, the oldest first.
	over []outage
	// began is when the present outage began; zero if there is none.
	began    time.Time
	observed bool
}

type outage struct{ began, ended time.Time }

// Observe adds that the cluster is now ready, or not, and since when by its condition.
// Conditions are written by several clocks, that of an agent among them. An outage is
// therefore never longer than it was observed, except for the first one: what lasts at
// the first look began when the condition says.
func (o Outages) Observe(ready bool, since, now time.Time) Outages {
	first := !o.observed
	o.observed = true
	switch {
	case !ready && o.began.IsZero():
		o.began = now
		if first {
			o.began = since
		}
	case ready && !o.began.IsZero():
		if now.Before(since) {
			since = now
		}
		o.over = append(slices.Clone(o.over[max(0, len(o.over)-keptOutages+1):]), outage{began: o.began, ended: since})
		o.began = time.Time{}
	}
	return o
}

// Cover reports whether the cluster was not ready at that time.
func (o Outages) Cover(at time.Time) bool {
	return !o.began.IsZero() && at.After(o.began) || slices.ContainsFunc(o.over, func(one outage) bool {
		return at.After(one.began) && at.Before(one.ended)
	})
}
