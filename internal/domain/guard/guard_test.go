package guard

import (
	"testing"

	"pgregory.net/rapid"
)

// mass and calm are bursts that are and are not a mass deletion by the limits.
var (
	mass   = Burst{Open: 30, Works: 40}
	calm   = Burst{Open: 3, Works: 4}
	limits = Limits{Least: 20, Percent: 50}
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		facts Facts
		burst Burst
		want  Verdict
	}{
		"a Work that a user made and deletes":                        {Facts{}, mass, Delete},
		"everything of a cluster that leaves":                        {Facts{ClusterLeaves: true, Owner: Drops}, mass, Delete},
		"even what is wanted in a cluster that leaves":               {Facts{ClusterLeaves: true, Owner: Wants}, mass, Delete},
		"a single Work that is still wanted":                         {Facts{Owner: Wants}, calm, HandOver},
		"half of a cluster that is still wanted":                     {Facts{Owner: Wants}, mass, HandOver},
		"what is wanted and was confirmed meanwhile":                 {Facts{Owner: Wants, Confirmed: true, Held: true}, mass, HandOver},
		"a few objects that a scheduler moves":                       {Facts{Owner: Drops}, calm, Delete},
		"half of a cluster that nobody asked to move":                {Facts{Owner: Drops}, mass, Hold},
		"half of a cluster after a change of the placement":          {Facts{Owner: Drops, Asked: true}, mass, Delete},
		"half of a cluster that the placement does not admit":        {Facts{Owner: Drops, Excluded: true}, mass, Delete},
		"what was left in a cluster that was lost and comes back":    {Facts{Owner: Drops, Moved: true}, mass, Delete},
		"half of a cluster with the consent of a user":               {Facts{Owner: Drops, Held: true, Confirmed: true}, mass, Delete},
		"what was stopped stays so when the burst is over":           {Facts{Owner: Drops, Held: true}, calm, Hold},
		"what was stopped and is explained now":                      {Facts{Owner: Drops, Held: true, Asked: true}, calm, Delete},
		"a template that was deleted":                                {Facts{Owner: Gone}, calm, Delete},
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
			if got := Decide(test.facts, test.burst, limits); got != test.want {
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
			if got := DefaultLimits().Exceeded(test.burst); got != test.want {
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
	}
}

func anyBurst(t *rapid.T) Burst {
	works := rapid.IntRange(0, 1000).Draw(t, "works")
	return Burst{Open: rapid.IntRange(0, works).Draw(t, "open"), Works: works}
}

func TestDecisionsAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, burst := anyFacts(t), anyBurst(t)
		verdict := Decide(facts, burst, limits)
		if verdict == Delete && facts.Owner == Wants && !facts.ClusterLeaves {
			t.Error("what is wanted is deleted")
		}
		if verdict == Delete && Open(facts) && !facts.Confirmed && limits.Exceeded(burst) {
			t.Error("a part of a mass deletion is done without an explanation")
		}
		if verdict == Prove && facts.Template != Unasked {
			t.Error("a template is looked at again and again")
		}
		if verdict == Hold && !Open(facts) {
			t.Error("an explained deletion is stopped")
		}
	})
}

func TestMoreEvidenceNeverStopsADeletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, burst := anyFacts(t), anyBurst(t)
		if Decide(facts, burst, limits) != Delete {
			return
		}
		more := facts
		more.ClusterLeaves = facts.ClusterLeaves || rapid.Bool().Draw(t, "more leaves")
		more.Asked = facts.Asked || rapid.Bool().Draw(t, "more asked")
		more.Excluded = facts.Excluded || rapid.Bool().Draw(t, "more excluded")
		more.Moved = facts.Moved || rapid.Bool().Draw(t, "more moved")
		more.Confirmed = facts.Confirmed || rapid.Bool().Draw(t, "more confirmed")
		if got := Decide(more, burst, limits); got != Delete {
			t.Errorf("%+v is deleted, but %+v gives %d", facts, more, got)
		}
	})
}
