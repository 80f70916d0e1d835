package guard

import (
	"testing"

	"pgregory.net/rapid"
)

// A mass deletion in one cluster, one in all clusters together, and none.
var (
	massDeletion  = Scale{Cluster: Burst{Open: 30, Works: 40}, Fleet: Burst{Open: 30, Works: 40}, Clusters: 1}
	fleetDeletion = Scale{Cluster: Burst{Open: 5, Works: 20}, Fleet: Burst{Open: 150, Works: 600}, Clusters: 30}
	fewDeletions  = Scale{Cluster: Burst{Open: 3, Works: 4}, Fleet: Burst{Open: 3, Works: 4}, Clusters: 1}
	limits        = DefaultLimits()
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		facts Facts
		scale Scale
		want  Verdict
	}{
		"a Work without an owner":                               {Facts{}, massDeletion, Delete},
		"all Works of an unregistering cluster":                 {Facts{ClusterLeaves: true, Owner: Drops}, massDeletion, Delete},
		"desired Works of an unregistering cluster":             {Facts{ClusterLeaves: true, Owner: Wants}, massDeletion, Delete},
		"unconfirmed restore":                                   {Facts{Restored: true}, fewDeletions, Hold},
		"unconfirmed restore, unregistering cluster":            {Facts{Restored: true, ClusterLeaves: true}, fewDeletions, Hold},
		"unconfirmed restore, desired Work":                     {Facts{Restored: true, Owner: Wants}, fewDeletions, HandOver},
		"a desired Work":                                        {Facts{Owner: Wants}, fewDeletions, HandOver},
		"desired Works of half a cluster":                       {Facts{Owner: Wants}, massDeletion, HandOver},
		"a desired Work that was held and confirmed":            {Facts{Owner: Wants, Confirmed: true, Held: true}, massDeletion, HandOver},
		"a few unexplained deletions":                           {Facts{Owner: Drops}, fewDeletions, Delete},
		"half of a cluster, unexplained":                        {Facts{Owner: Drops}, massDeletion, Hold},
		"half of a cluster after a change of the placement":     {Facts{Owner: Drops, Asked: true}, massDeletion, Delete},
		"half of a cluster that the placement excludes":         {Facts{Owner: Drops, Excluded: true}, massDeletion, Delete},
		"half of a cluster that was unreachable":                {Facts{Owner: Drops, Moved: true}, massDeletion, Delete},
		"a held deletion, the cluster was unreachable":          {Facts{Owner: Drops, Moved: true, Held: true}, fewDeletions, Hold},
		"held deletions of half a cluster that was unreachable": {Facts{Owner: Drops, Moved: true, Held: true}, massDeletion, Hold},
		"half of a cluster, confirmed by a user":                {Facts{Owner: Drops, Held: true, Confirmed: true}, massDeletion, Delete},
		"a held deletion stays held after the burst":            {Facts{Owner: Drops, Held: true}, fewDeletions, Hold},
		"a held deletion with an explanation":                   {Facts{Owner: Drops, Held: true, Asked: true}, fewDeletions, Delete},
		"a few workloads excluded by a label of the cluster":    {Facts{Owner: Drops, Unmatched: true}, fewDeletions, Delete},
		"twenty workloads excluded by a label of the cluster":   {Facts{Owner: Drops, Unmatched: true}, Scale{Cluster: Burst{Open: 20, Works: 5000}, Clusters: 1}, Hold},
		"excluded by a label, confirmed by a user":              {Facts{Owner: Drops, Unmatched: true, Confirmed: true}, massDeletion, Delete},
		"a few Works of each of many clusters":                  {Facts{Owner: Drops}, fleetDeletion, Hold},
		"many clusters, a changed placement":                    {Facts{Owner: Drops, Asked: true}, fleetDeletion, Delete},
		"many clusters, confirmed by a user":                    {Facts{Owner: Drops, Confirmed: true}, fleetDeletion, Delete},
		"a deletion that was allowed before":                    {Facts{Owner: Drops, Decided: true}, massDeletion, Delete},
		"allowed before and desired again":                      {Facts{Owner: Wants, Decided: true}, fewDeletions, HandOver},
		"a template that was not read":                          {Facts{Owner: Gone}, fewDeletions, Prove},
		"a template that was deleted":                           {Facts{Owner: Gone, Template: Deleted}, fewDeletions, Delete},
		"a template that no policy claims":                      {Facts{Owner: Gone, Template: Unclaimed}, fewDeletions, Delete},
		"a missing binding with a claimed template":             {Facts{Owner: Gone, Template: Kept}, fewDeletions, Hold},
		"a template that cannot be read":                        {Facts{Owner: Gone, Template: Unknown}, fewDeletions, Hold},
		"a template of a kind that is not served":               {Facts{Owner: Gone, Template: Unserved}, fewDeletions, Hold},
		"a template that cannot be read, confirmed by a user":   {Facts{Owner: Gone, Template: Unknown, Confirmed: true}, fewDeletions, Delete},
		"many templates that were not read":                     {Facts{Owner: Gone}, massDeletion, Prove},
		"many templates that are deleted":                       {Facts{Owner: Gone, Template: Deleted}, massDeletion, Delete},
		"many templates that no policy claims":                  {Facts{Owner: Gone, Template: Unclaimed}, massDeletion, Delete},
		"many missing bindings with claimed templates":          {Facts{Owner: Gone, Template: Kept}, massDeletion, Hold},
		"many templates that cannot be read":                    {Facts{Owner: Gone, Template: Unknown}, massDeletion, Hold},
		"a template that cannot be read, held before":           {Facts{Owner: Gone, Template: Unknown, Held: true}, fewDeletions, Hold},
		"a held deletion reads the template again":              {Facts{Owner: Gone, Held: true}, fewDeletions, Prove},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := Decide(test.facts, test.scale, limits); got != test.want {
				t.Errorf("Decide = %d, want %d", got, test.want)
			}
		})
	}
}

func TestClusterLimit(t *testing.T) {
	tests := map[string]struct {
		burst Burst
		want  bool
	}{
		"no deletions":                    {Burst{}, false},
		"all of a small cluster":          {Burst{Open: 19, Works: 19}, false},
		"all of a larger one":             {Burst{Open: 20, Works: 20}, true},
		"exactly half":                    {Burst{Open: 20, Works: 40}, false},
		"more than half":                  {Burst{Open: 21, Works: 40}, true},
		"many of a very large one":        {Burst{Open: 4000, Works: 10_000}, false},
		"most of a very large one":        {Burst{Open: 6000, Works: 10_000}, true},
		"more deletions than known Works": {Burst{Open: 30, Works: 0}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := DefaultLimits().Cluster.Exceeded(test.burst); got != test.want {
				t.Errorf("Exceeded = %v", got)
			}
		})
	}
}

func drawFacts(t *rapid.T) Facts {
	return Facts{
		ClusterLeaves: rapid.Bool().Draw(t, "leaves"),
		Owner:         Owner(rapid.IntRange(int(Nobody), int(Gone)).Draw(t, "owner")),
		Asked:         rapid.Bool().Draw(t, "asked"),
		Excluded:      rapid.Bool().Draw(t, "excluded"),
		Moved:         rapid.Bool().Draw(t, "moved"),
		Template:      Template(rapid.IntRange(int(Unasked), int(Unclaimed)).Draw(t, "template")),
		Held:          rapid.Bool().Draw(t, "held"),
		Confirmed:     rapid.Bool().Draw(t, "confirmed"),
		Decided:       rapid.Bool().Draw(t, "decided"),
		Unmatched:     rapid.Bool().Draw(t, "unmatched"),
		Restored:      rapid.Bool().Draw(t, "restored"),
	}
}

// drawBursts returns a burst in a cluster, and a burst in several clusters that include it.
func drawBursts(t *rapid.T) Scale {
	works, others := rapid.IntRange(0, 1000).Draw(t, "works"), rapid.IntRange(0, 10_000).Draw(t, "works of others")
	s := Scale{Cluster: Burst{Open: rapid.IntRange(0, works).Draw(t, "open"), Works: works}, Clusters: rapid.IntRange(0, 50).Draw(t, "clusters")}
	s.Fleet = Burst{Open: s.Cluster.Open + rapid.IntRange(0, others).Draw(t, "open in others"), Works: works + others}
	return s
}

func TestDecisionsAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, scale := drawFacts(t), drawBursts(t)
		verdict, reason := Decide(facts, scale, limits)
		if verdict == Delete && facts.Owner == Wants && !facts.ClusterLeaves {
			t.Error("a desired object is deleted")
		}
		allowed := facts.Confirmed || facts.Decided
		if verdict == Delete && Open(facts) && !allowed && (limits.Cluster.Exceeded(scale.Cluster) || scale.Clusters > 1 && limits.Fleet.Exceeded(scale.Fleet)) {
			t.Error("a deletion in a mass deletion is executed without an explanation")
		}
		if verdict == Delete && Open(facts) && !allowed && facts.Owner == Gone {
			t.Error("a missing binding counts as a deleted template")
		}
		if verdict == Prove && facts.Template != Unasked {
			t.Error("a template is read repeatedly")
		}
		if verdict == Delete && facts.Restored {
			t.Error("a restored control plane deletes before a user confirmed the restore")
		}
		if verdict == Delete && Open(facts) && !allowed && facts.Unmatched && limits.Changed.Exceeded(scale.Cluster) {
			t.Error("a change of the cluster deletes many workloads")
		}
		if verdict == Delete && facts.Held && facts.Owner == Drops && !allowed && !facts.ClusterLeaves && !facts.Asked && !facts.Excluded {
			t.Error("a held deletion is executed although no user confirmed or explained it")
		}
		if verdict == Hold && !Open(facts) && !facts.Restored {
			t.Error("an explained deletion is held")
		}
		if (verdict == Hold) != (reason != NoReason) {
			t.Errorf("verdict %d with reason %d", verdict, reason)
		}
	})
}

func TestMoreEvidenceNeverHoldsADeletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, scale := drawFacts(t), drawBursts(t)
		if verdict, _ := Decide(facts, scale, limits); verdict != Delete {
			return
		}
		more := facts
		more.ClusterLeaves = facts.ClusterLeaves || rapid.Bool().Draw(t, "more leaves")
		more.Asked = facts.Asked || rapid.Bool().Draw(t, "more asked")
		more.Excluded = facts.Excluded || rapid.Bool().Draw(t, "more excluded")
		more.Moved = facts.Moved || rapid.Bool().Draw(t, "more moved")
		more.Confirmed = facts.Confirmed || rapid.Bool().Draw(t, "more confirmed")
		more.Held = facts.Held && rapid.Bool().Draw(t, "still held")
		if got, _ := Decide(more, scale, limits); got != Delete {
			t.Errorf("%+v is deleted, but %+v gives %d", facts, more, got)
		}
	})
}

func TestFewerDeletionsNeverHoldADeletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, scale := drawFacts(t), drawBursts(t)
		if verdict, _ := Decide(facts, scale, limits); verdict != Delete {
			return
		}
		fewer := scale
		fewer.Cluster.Open -= rapid.IntRange(0, scale.Cluster.Open).Draw(t, "fewer")
		fewer.Fleet.Open -= rapid.IntRange(scale.Cluster.Open-fewer.Cluster.Open, scale.Fleet.Open).Draw(t, "fewer in all")
		fewer.Clusters -= rapid.IntRange(0, scale.Clusters).Draw(t, "fewer clusters")
		if got, _ := Decide(facts, fewer, limits); got != Delete {
			t.Errorf("%+v is deleted at %+v, but %+v gives %d", facts, scale, fewer, got)
		}
	})
}

func TestFleetLimit(t *testing.T) {
	tests := map[string]struct {
		burst Burst
		want  bool
	}{
		"all of a small installation":               {Burst{Open: 99, Works: 99}, false},
		"a tenth of a large one":                    {Burst{Open: 1000, Works: 10_000}, false},
		"more than a tenth":                         {Burst{Open: 1001, Works: 10_000}, true},
		"five of twenty Works in each of thirty":    {Burst{Open: 150, Works: 600}, true},
		"nineteen of a thousand in each of hundred": {Burst{Open: 1900, Works: 100_000}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := DefaultLimits().Fleet.Exceeded(test.burst); got != test.want {
				t.Errorf("Exceeded = %v", got)
			}
		})
	}
}
