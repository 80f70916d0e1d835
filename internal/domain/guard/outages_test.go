package guard

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// observation is one observation of a cluster: its time in seconds, whether the cluster is ready,
// and since when it is in this state according to its condition.
type observation struct {
	seconds int64
	ready   bool
	since   int64
}

func observe(views ...observation) Outages {
	var outages Outages
	for _, each := range views {
		outages = outages.Observe(each.ready, time.Unix(each.since, 0), time.Unix(each.seconds, 0))
	}
	return outages
}

func TestOutagesContain(t *testing.T) {
	tests := map[string]struct {
		views []observation
		at    int64
		want  bool
	}{
		"no observation":                                          {nil, 10, false},
		"always ready":                                            {[]observation{{1, true, 1}}, 10, false},
		"an outage that was not observed":                         {[]observation{{1, true, 1}, {20, true, 20}}, 10, false},
		"before the first observation":                            {[]observation{{30, true, 20}}, 10, false},
		"before the outage":                                       {[]observation{{1, true, 1}, {20, false, 20}, {30, true, 30}}, 10, false},
		"in the second in which the outage begins":                {[]observation{{1, true, 1}, {10, false, 10}, {30, true, 30}}, 10, false},
		"during a past outage":                                    {[]observation{{1, true, 1}, {5, false, 5}, {30, true, 30}}, 10, true},
		"during the present outage":                               {[]observation{{1, true, 1}, {5, false, 5}}, 10, true},
		"during an outage present at the first, late observation": {[]observation{{20, false, 5}, {30, true, 30}}, 10, true},
		"during an outage that was observed late":                 {[]observation{{1, true, 1}, {20, false, 5}, {30, true, 30}}, 10, false},
		"during an outage, first False and then Unknown":          {[]observation{{1, true, 1}, {5, false, 5}, {20, false, 20}, {30, true, 30}}, 10, true},
		"in the second in which the outage ends":                  {[]observation{{5, false, 5}, {10, true, 10}}, 10, false},
		"after the outage":                                        {[]observation{{5, false, 5}, {8, true, 8}}, 10, false},
		"after the outage, observed late":                         {[]observation{{5, false, 5}, {20, true, 8}}, 10, false},
		"after the outage, slow clock":                            {[]observation{{5, false, 5}, {8, true, 1}}, 10, false},
		"after the outage, fast clock":                            {[]observation{{5, false, 5}, {8, true, 100}}, 10, false},
		"before an outage reported with a slow clock":             {[]observation{{1, true, 1}, {20, false, 2}, {30, true, 12}}, 10, false},
		"in the first of two outages":                             {[]observation{{5, false, 5}, {20, true, 20}, {30, false, 30}, {40, true, 40}}, 10, true},
		"between two outages":                                     {[]observation{{1, false, 1}, {5, true, 5}, {30, false, 30}, {40, true, 40}}, 10, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := observe(test.views...).Contains(time.Unix(test.at, 0)); got != test.want {
				t.Errorf("Cover = %t", got)
			}
		})
	}
}

// TestOutagesNeverContainReadyTime observes the transitions of a cluster with delays. The first
// observation may follow any transition.
func TestOutagesNeverContainReadyTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var history []observation
		now := int64(0)
		for range rapid.IntRange(1, 3*maxOutages).Draw(t, "transitions") {
			since := now + rapid.Int64Range(1, 10).Draw(t, "seconds")
			now = since + rapid.Int64Range(0, 10).Draw(t, "late")
			history = append(history, observation{seconds: now, ready: len(history)%2 == 0, since: since})
		}
		outages := observe(history[rapid.IntRange(0, len(history)-1).Draw(t, "first observed"):]...)
		if len(outages.ended) > maxOutages {
			t.Errorf("%d outages are stored", len(outages.ended))
		}
		at := rapid.Int64Range(0, now+10).Draw(t, "at")
		ready := true
		for _, each := range history {
			if each.since <= at {
				ready = each.ready
			}
		}
		if ready && outages.Contains(time.Unix(at, 0)) {
			t.Errorf("%+v contains %d, when the cluster was ready", outages, at)
		}
	})
}
