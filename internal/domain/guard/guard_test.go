package guard

import (
	"testing"

	"pgregory.net/rapid"
)

// mass, fleet and calm are what is a mass deletion in a cluster by the limits, what is
// one in all clusters together, and what is none.
var (
	mass   = Scale{Cluster: Burst{Open: 30, Works: 40}, Fleet: Burst{Open: 30, Works: 40}, Clusters: 1}
	fleet  = Scale{Cluster: Burst{Open: 5, Works: 20}, Fleet: Burst{Open: 150, Works: 600}, Clusters: 30}
	calm   = Scale{Cluster: Burst{Open: 3, Works: 4}, Fleet: Burst{Open: 3, Works: 4}, Clusters: 1}
	limits = DefaultLimits()
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		facts Facts
		scale Scale
		want  Verdict
	}{
		"a Work that a user made and deletes":                        {Facts{}, mass, Delete},
		"everything of a cluster that leaves":                        {Facts{ClusterLeaves: true, Owner: Drops}, mass, Delete},
		"even what is wanted in a cluster that leaves":               {Facts{ClusterLeaves: true, Owner: Wants}, mass, Delete},
		"anything after a restore that is not confirmed":             {Facts{Restored: true}, calm, Hold},
		"a cluster that leaves after such a restore":                 {Facts{Restored: true, ClusterLeaves: true}, calm, Hold},
		"what is wanted after such a restore":                        {Facts{Restored: true, Owner: Wants}, calm, HandOver},
		"a single Work that is still wanted":                         {Facts{Owner: Wants}, calm, HandOver},
		"half of a cluster that is still wanted":                     {Facts{Owner: Wants}, mass, HandOver},
		"what is wanted and was confirmed meanwhile":                 {Facts{Owner: Wants, Confirmed: true, Held: true}, mass, HandOver},
		"a few objects that a scheduler moves":                       {Facts{Owner: Drops}, calm, Delete},
		"half of a cluster that nobody asked to move":                {Facts{Owner: Drops}, mass, Hold},
		"half of a cluster after a change of the placement":          {Facts{Owner: Drops, Asked: true}, mass, Delete},
		"half of a cluster that the placement does not admit":        {Facts{Owner: Drops, Excluded: true}, mass, Delete},
		"what was left in a cluster that was lost and comes back":    {Facts{Owner: Drops, Moved: true}, mass, Delete},
		"what was stopped, and the cluster was lost and comes back":  {Facts{Owner: Drops, Moved: true, Held: true}, calm, Hold},
		"half of it, stopped before the cluster comes back":          {Facts{Owner: Drops, Moved: true, Held: true}, mass, Hold},
		"half of a cluster with the consent of a user":               {Facts{Owner: Drops, Held: true, Confirmed: true}, mass, Delete},
		"what was stopped stays so when the burst is over":           {Facts{Owner: Drops, Held: true}, calm, Hold},
		"what was stopped and is explained now":                      {Facts{Owner: Drops, Held: true, Asked: true}, calm, Delete},
		"a few workloads that a label of the cluster excludes":       {Facts{Owner: Drops, Unmatched: true}, calm, Delete},
		"twenty of many that a label of the cluster excludes":        {Facts{Owner: Drops, Unmatched: true}, Scale{Cluster: Burst{Open: 20, Works: 5000}, Clusters: 1}, Hold},
		"those with the consent of a user to the label":              {Facts{Owner: Drops, Unmatched: true, Confirmed: true}, mass, Delete},
		"a few Works of each of many clusters":                       {Facts{Owner: Drops}, fleet, Hold},
		"those of a changed placement":                               {Facts{Owner: Drops, Asked: true}, fleet, Delete},
		"those with the consent of a user":                           {Facts{Owner: Drops, Confirmed: true}, fleet, Delete},
		"what an agent was told to delete":                           {Facts{Owner: Drops, Decided: true}, mass, Delete},
		"what an agent was told to delete and is wanted again":       {Facts{Owner: Wants, Decided: true}, calm, HandOver},
		"a template that seems to be deleted is looked at":           {Facts{Owner: Gone}, calm, Prove},
		"a template that was deleted":                                {Facts{Owner: Gone, Template: Deleted}, calm, Delete},
		"a template that no policy claims":                           {Facts{Owner: Gone, Template: Unclaimed}, calm, Delete},
		"one binding that is gone while its template is kept":        {Facts{Owner: Gone, Template: Kept}, calm, Hold},
		"one template that cannot be read":                           {Facts{Owner: Gone, Template: Unknown}, calm, Hold},
		"one template of a kind that is not served":                  {Facts{Owner: Gone, Template: Unserved}, calm, Hold},
		"one template that cannot be read, but a user confirms":      {Facts{Owner: Gone, Template: Unknown, Confirmed: true}, calm, Delete},
		"many templates that seem to be deleted are looked at":       {Facts{Owner: Gone}, mass, Prove},
		"many templates that are deleted":                            {Facts{Owner: Gone, Template: Deleted}, mass, Delete},
		"many templates that no policy claims":                       {Facts{Owner: Gone, Template: Unclaimed}, mass, Delete},
		"many bindings that are gone while their templates are kept": {Facts{Owner: Gone, Template: Kept}, mass, Hold},
		"many templates that cannot be read":                         {Facts{Owner: Gone, Template: Unknown}, mass, Hold},
		"one template that cannot be read, stopped before":           {Facts{Owner: Gone, Template: Unknown, Held: true}, calm, Hold},
		"one that was stopped is looked at again":                    {Facts{Owner: Gone, Held: true}, calm, Prove},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := Decide(test.facts, test.scale, limits); got != test.want {
				t.Errorf("Decide = %d, want %d", got, test.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	tests := map[string]struct {
		burst Burst
		want  bool
	}{
		"nothing at all":                    {Burst{}, false},
		"all of a small cluster":            {Burst{Open: 19, Works: 19}, false},
		"all of a larger one":               {Burst{Open: 20, Works: 20}, true},
		"exactly half":                      {Burst{Open: 20, Works: 40}, false},
		"more than half":                    {Burst{Open: 21, Works: 40}, true},
		"many of a very large one":          {Burst{Open: 4000, Works: 10_000}, false},
		"most of a very large one":          {Burst{Open: 6000, Works: 10_000}, true},
		"more than were counted beforehand": {Burst{Open: 30, Works: 0}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := DefaultLimits().Cluster.Exceeded(test.burst); got != test.want {
				t.Errorf("Exceeded = %v", got)
			}
		})
	}
}

func anyFacts(t *rapid.T) Facts {
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

// anyScale is a burst in a cluster, and a burst in several clusters, this one included.
func anyScale(t *rapid.T) Scale {
	works, others := rapid.IntRange(0, 1000).Draw(t, "works"), rapid.IntRange(0, 10_000).Draw(t, "works of others")
	s := Scale{Cluster: Burst{Open: rapid.IntRange(0, works).Draw(t, "open"), Works: works}, Clusters: rapid.IntRange(0, 50).Draw(t, "clusters")}
	s.Fleet = Burst{Open: s.Cluster.Open + rapid.IntRange(0, others).Draw(t, "open in others"), Works: works + others}
	return s
}

func TestDecisionsAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, scale := anyFacts(t), anyScale(t)
		verdict, reason := Decide(facts, scale, limits)
		if verdict == Delete && facts.Owner == Wants && !facts.ClusterLeaves {
			t.Error("what is wanted is deleted")
		}
		asked := facts.Confirmed || facts.Decided
		if verdict == Delete && Open(facts) && !asked && (limits.Cluster.Exceeded(scale.Cluster) || scale.Clusters > 1 && limits.Fleet.Exceeded(scale.Fleet)) {
			t.Error("a part of a mass deletion is executed without an explanation")
		}
		if verdict == Delete && Open(facts) && !asked && facts.Owner == Gone {
			t.Error("a missing binding is taken for a deleted template")
		}
		if verdict == Prove && facts.Template != Unasked {
			t.Error("a template is read again and again")
		}
		if verdict == Delete && facts.Restored {
			t.Error("a restored control plane deletes before a user confirmed the restore")
		}
		if verdict == Delete && Open(facts) && !asked && facts.Unmatched && limits.Changed.Exceeded(scale.Cluster) {
			t.Error("a change of the cluster deletes many workloads")
		}
		if verdict == Delete && facts.Held && facts.Owner == Drops && !asked && !facts.ClusterLeaves && !facts.Asked && !facts.Excluded {
			t.Error("a held deletion is executed although no user confirmed or explained it")
		}
		if verdict == Hold && !Open(facts) && !facts.Restored {
			t.Error("an explained deletion is stopped")
		}
		if (verdict == Hold) != (reason != NoReason) {
			t.Errorf("verdict %d with reason %d", verdict, reason)
		}
	})
}

func TestMoreEvidenceNeverStopsADeletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, scale := anyFacts(t), anyScale(t)
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

func TestFewerDeletionsNeverStopADeletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, scale := anyFacts(t), anyScale(t)
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

func TestTheLimitOfAllClusters(t *testing.T) {
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
