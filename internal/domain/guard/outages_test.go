package guard

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// view is what was seen of a cluster after a number of seconds, and since when its
// condition says so.
type view struct {
	at    int64
	ready bool
	since int64
}

func observed(views ...view) Outages {
	var outages Outages
	for _, each := range views {
		outages = outages.Observe(each.ready, time.Unix(each.since, 0), time.Unix(each.at, 0))
	}
	return outages
}

func TestOutagesCover(t *testing.T) {
	tests := map[string]struct {
		views []view
		at    int64
		want  bool
	}{
		"a cluster that was never seen":                        {nil, 10, false},
		"a cluster that is ready":                              {[]view{{1, true, 1}}, 10, false},
		"a cluster that was lost and came back unseen":         {[]view{{1, true, 1}, {20, true, 20}}, 10, false},
		"before the first look, lost or not":                   {[]view{{30, true, 20}}, 10, false},
		"before it was lost":                                   {[]view{{1, true, 1}, {20, false, 20}, {30, true, 30}}, 10, false},
		"in the second in which it was lost":                   {[]view{{1, true, 1}, {10, false, 10}, {30, true, 30}}, 10, false},
		"while it was lost":                                    {[]view{{1, true, 1}, {5, false, 5}, {30, true, 30}}, 10, true},
		"while it is lost":                                     {[]view{{1, true, 1}, {5, false, 5}}, 10, true},
		"while it was lost at the first look, which came late": {[]view{{20, false, 5}, {30, true, 30}}, 10, true},
		"while it was lost, which was seen late":               {[]view{{1, true, 1}, {20, false, 5}, {30, true, 30}}, 10, false},
		"while it was lost, first False and then Unknown":      {[]view{{1, true, 1}, {5, false, 5}, {20, false, 20}, {30, true, 30}}, 10, true},
		"in the second in which it came back":                  {[]view{{5, false, 5}, {10, true, 10}}, 10, false},
		"after it came back":                                   {[]view{{5, false, 5}, {8, true, 8}}, 10, false},
		"after it came back, which was seen late":              {[]view{{5, false, 5}, {20, true, 8}}, 10, false},
		"after it came back with a clock that is slow":         {[]view{{5, false, 5}, {8, true, 1}}, 10, false},
		"after it came back with a clock that is fast":         {[]view{{5, false, 5}, {8, true, 100}}, 10, false},
		"before it reported an outage with a slow clock":       {[]view{{1, true, 1}, {20, false, 2}, {30, true, 12}}, 10, false},
		"in the first of two outages":                          {[]view{{5, false, 5}, {20, true, 20}, {30, false, 30}, {40, true, 40}}, 10, true},
		"between two outages":                                  {[]view{{1, false, 1}, {5, true, 5}, {30, false, 30}, {40, true, 40}}, 10, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := observed(test.views...).Cover(time.Unix(test.at, 0)); got != test.want {
				t.Errorf("Cover = %t", got)
			}
		})
	}
}

// TestOutagesNeverCoverATimeInWhichTheClusterWasReady observes the transitions of a
// cluster from any of them on, each somewhat late.
func TestOutagesNeverCoverATimeInWhichTheClusterWasReady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var history []view
		now := int64(0)
		for range rapid.IntRange(1, 3*keptOutages).Draw(t, "transitions") {
			since := now + rapid.Int64Range(1, 10).Draw(t, "seconds")
			now = since + rapid.Int64Range(0, 10).Draw(t, "late")
			history = append(history, view{at: now, ready: len(history)%2 == 0, since: since})
		}
		outages := observed(history[rapid.IntRange(0, len(history)-1).Draw(t, "first observed"):]...)
		if len(outages.over) > keptOutages {
			t.Errorf("%d outages are kept", len(outages.over))
		}
		at := rapid.Int64Range(0, now+10).Draw(t, "at")
		ready := true
		for _, each := range history {
			if each.since <= at {
				ready = each.ready
			}
		}
		if ready && outages.Cover(time.Unix(at, 0)) {
			t.Errorf("%+v covers %d, when the cluster was ready", outages, at)
		}
	})
}
