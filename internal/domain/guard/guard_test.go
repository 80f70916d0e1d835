package guard

import (
	"testing"

	"pgregory.net/rapid"
)

// Bursts with a mass deletion in one cluster, with one in all clusters together, and without a mass
// deletion.
var (
	massDeletion  = Bursts{Cluster: Burst{Unexplained: 30, Works: 40}, Fleet: Burst{Unexplained: 30, Works: 40}, Clusters: 1}
	fleetDeletion = Bursts{Cluster: Burst{Unexplained: 5, Works: 20}, Fleet: Burst{Unexplained: 150, Works: 600}, Clusters: 30}
	fewDeletions  = Bursts{Cluster: Burst{Unexplained: 3, Works: 4}, Fleet: Burst{Unexplained: 3, Works: 4}, Clusters: 1}
	limits        = DefaultLimits()
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		facts Facts
		scale Bursts
		want  Verdict
	}{
		"a Work without an owner":                               {Facts{}, massDeletion, Delete},
		"all Works of an unregistering cluster":                 {Facts{ClusterUnregistering: true, Owner: OwnerDropsWork}, massDeletion, Delete},
		"desired Works of an unregistering cluster":             {Facts{ClusterUnregistering: true, Owner: OwnerRequiresWork}, massDeletion, Delete},
		"unconfirmed restore":                                   {Facts{RestoreUnconfirmed: true}, fewDeletions, Hold},
		"unconfirmed restore, unregistering cluster":            {Facts{RestoreUnconfirmed: true, ClusterUnregistering: true}, fewDeletions, Hold},
		"unconfirmed restore, desired Work":                     {Facts{RestoreUnconfirmed: true, Owner: OwnerRequiresWork}, fewDeletions, HandOver},
		"a desired Work":                                        {Facts{Owner: OwnerRequiresWork}, fewDeletions, HandOver},
		"desired Works of half a cluster":                       {Facts{Owner: OwnerRequiresWork}, massDeletion, HandOver},
		"a desired Work that was held and confirmed":            {Facts{Owner: OwnerRequiresWork, Confirmed: true, WasHeld: true}, massDeletion, HandOver},
		"a few unexplained deletions":                           {Facts{Owner: OwnerDropsWork}, fewDeletions, Delete},
		"half of a cluster, unexplained":                        {Facts{Owner: OwnerDropsWork}, massDeletion, Hold},
		"half of a cluster after a change of the placement":     {Facts{Owner: OwnerDropsWork, PlacementChanged: true}, massDeletion, Delete},
		"half of a cluster that the placement excludes":         {Facts{Owner: OwnerDropsWork, Excluded: true}, massDeletion, Delete},
		"half of a cluster after its replicas were removed":     {Facts{Owner: OwnerDropsWork, Descheduled: true}, massDeletion, Delete},
		"removed replicas, and the cluster is desired again":    {Facts{Owner: OwnerRequiresWork, Descheduled: true}, massDeletion, HandOver},
		"removed replicas, and the binding is missing":          {Facts{Owner: OwnerGone, Descheduled: true, Template: TemplateInUse}, fewDeletions, Hold},
		"half of a cluster that was unreachable":                {Facts{Owner: OwnerDropsWork, MovedWhileUnreachable: true}, massDeletion, Delete},
		"a held deletion, the cluster was unreachable":          {Facts{Owner: OwnerDropsWork, MovedWhileUnreachable: true, WasHeld: true}, fewDeletions, Hold},
		"held deletions of half a cluster that was unreachable": {Facts{Owner: OwnerDropsWork, MovedWhileUnreachable: true, WasHeld: true}, massDeletion, Hold},
		"half of a cluster, confirmed by a user":                {Facts{Owner: OwnerDropsWork, WasHeld: true, Confirmed: true}, massDeletion, Delete},
		"a held deletion stays held after the burst":            {Facts{Owner: OwnerDropsWork, WasHeld: true}, fewDeletions, Hold},
		"a held deletion with an explanation":                   {Facts{Owner: OwnerDropsWork, WasHeld: true, PlacementChanged: true}, fewDeletions, Delete},
		"a few workloads excluded by a label of the cluster":    {Facts{Owner: OwnerDropsWork, Unmatched: true}, fewDeletions, Delete},
		"twenty workloads excluded by a label of the cluster":   {Facts{Owner: OwnerDropsWork, Unmatched: true}, Bursts{Cluster: Burst{Unexplained: 20, Works: 5000}, Clusters: 1}, Hold},
		"excluded by a label, confirmed by a user":              {Facts{Owner: OwnerDropsWork, Unmatched: true, Confirmed: true}, massDeletion, Delete},
		"a few Works of each of many clusters":                  {Facts{Owner: OwnerDropsWork}, fleetDeletion, Hold},
		"many clusters, a changed placement":                    {Facts{Owner: OwnerDropsWork, PlacementChanged: true}, fleetDeletion, Delete},
		"many clusters, confirmed by a user":                    {Facts{Owner: OwnerDropsWork, Confirmed: true}, fleetDeletion, Delete},
		"a deletion that was allowed before":                    {Facts{Owner: OwnerDropsWork, AlreadyAllowed: true}, massDeletion, Delete},
		"allowed before and desired again":                      {Facts{Owner: OwnerRequiresWork, AlreadyAllowed: true}, fewDeletions, HandOver},
		"a template that was not read":                          {Facts{Owner: OwnerGone}, fewDeletions, ReadTemplate},
		"a template that was deleted":                           {Facts{Owner: OwnerGone, Template: TemplateDeleted}, fewDeletions, Delete},
		"a template that no policy claims":                      {Facts{Owner: OwnerGone, Template: TemplateUnclaimed}, fewDeletions, Delete},
		"a missing binding with a claimed template":             {Facts{Owner: OwnerGone, Template: TemplateInUse}, fewDeletions, Hold},
		"a template that cannot be read":                        {Facts{Owner: OwnerGone, Template: TemplateUnreadable}, fewDeletions, Hold},
		"a template of a kind that is not served":               {Facts{Owner: OwnerGone, Template: TemplateNotServed}, fewDeletions, Hold},
		"a template that cannot be read, confirmed by a user":   {Facts{Owner: OwnerGone, Template: TemplateUnreadable, Confirmed: true}, fewDeletions, Delete},
		"many templates that were not read":                     {Facts{Owner: OwnerGone}, massDeletion, ReadTemplate},
		"many templates that are deleted":                       {Facts{Owner: OwnerGone, Template: TemplateDeleted}, massDeletion, Delete},
		"many templates that no policy claims":                  {Facts{Owner: OwnerGone, Template: TemplateUnclaimed}, massDeletion, Delete},
		"many missing bindings with claimed templates":          {Facts{Owner: OwnerGone, Template: TemplateInUse}, massDeletion, Hold},
		"many templates that cannot be read":                    {Facts{Owner: OwnerGone, Template: TemplateUnreadable}, massDeletion, Hold},
		"a template that cannot be read, held before":           {Facts{Owner: OwnerGone, Template: TemplateUnreadable, WasHeld: true}, fewDeletions, Hold},
		"a held deletion reads the template again":              {Facts{Owner: OwnerGone, WasHeld: true}, fewDeletions, ReadTemplate},
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
		"all of a small cluster":          {Burst{Unexplained: 19, Works: 19}, false},
		"all of a larger one":             {Burst{Unexplained: 20, Works: 20}, true},
		"exactly half":                    {Burst{Unexplained: 20, Works: 40}, false},
		"more than half":                  {Burst{Unexplained: 21, Works: 40}, true},
		"many of a very large one":        {Burst{Unexplained: 4000, Works: 10_000}, false},
		"most of a very large one":        {Burst{Unexplained: 6000, Works: 10_000}, true},
		"more deletions than known Works": {Burst{Unexplained: 30, Works: 0}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := DefaultLimits().Cluster.IsExceeded(test.burst); got != test.want {
				t.Errorf("Exceeded = %v", got)
			}
		})
	}
}

func drawFacts(t *rapid.T) Facts {
	return Facts{
		ClusterUnregistering:  rapid.Bool().Draw(t, "leaves"),
		Owner:                 Owner(rapid.IntRange(int(OwnerNone), int(OwnerGone)).Draw(t, "owner")),
		PlacementChanged:      rapid.Bool().Draw(t, "asked"),
		Excluded:              rapid.Bool().Draw(t, "excluded"),
		Descheduled:           rapid.Bool().Draw(t, "descheduled"),
		MovedWhileUnreachable: rapid.Bool().Draw(t, "moved"),
		Template:              TemplateState(rapid.IntRange(int(TemplateNotRead), int(TemplateUnclaimed)).Draw(t, "template")),
		WasHeld:               rapid.Bool().Draw(t, "held"),
		Confirmed:             rapid.Bool().Draw(t, "confirmed"),
		AlreadyAllowed:        rapid.Bool().Draw(t, "decided"),
		Unmatched:             rapid.Bool().Draw(t, "unmatched"),
		RestoreUnconfirmed:    rapid.Bool().Draw(t, "restored"),
	}
}

// drawBursts draws a burst in one cluster, and a burst in several clusters that include this
// cluster.
func drawBursts(t *rapid.T) Bursts {
	works, others := rapid.IntRange(0, 1000).Draw(t, "works"), rapid.IntRange(0, 10_000).Draw(t, "works of others")
	s := Bursts{Cluster: Burst{Unexplained: rapid.IntRange(0, works).Draw(t, "open"), Works: works}, Clusters: rapid.IntRange(0, 50).Draw(t, "clusters")}
	s.Fleet = Burst{Unexplained: s.Cluster.Unexplained + rapid.IntRange(0, others).Draw(t, "open in others"), Works: works + others}
	return s
}

func TestDecisionsAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, scale := drawFacts(t), drawBursts(t)
		verdict, reason := Decide(facts, scale, limits)
		if verdict == Delete && facts.Owner == OwnerRequiresWork && !facts.ClusterUnregistering {
			t.Error("a desired object is deleted")
		}
		allowed := facts.Confirmed || facts.AlreadyAllowed
		if verdict == Delete && IsUnexplained(facts) && !allowed && (limits.Cluster.IsExceeded(scale.Cluster) || scale.Clusters > 1 && limits.Fleet.IsExceeded(scale.Fleet)) {
			t.Error("a deletion in a mass deletion is executed without an explanation")
		}
		if verdict == Delete && IsUnexplained(facts) && !allowed && facts.Owner == OwnerGone {
			t.Error("a missing binding counts as a deleted template")
		}
		if verdict == ReadTemplate && facts.Template != TemplateNotRead {
			t.Error("a template is read repeatedly")
		}
		if verdict == Delete && facts.RestoreUnconfirmed {
			t.Error("a restored control plane deletes before a user confirmed the restore")
		}
		if verdict == Delete && IsUnexplained(facts) && !allowed && facts.Unmatched && limits.ChangedCluster.IsExceeded(scale.Cluster) {
			t.Error("a change of the cluster deletes many workloads")
		}
		if verdict == Delete && facts.WasHeld && facts.Owner == OwnerDropsWork && !allowed && !facts.ClusterUnregistering && !facts.PlacementChanged && !facts.Excluded && !facts.Descheduled {
			t.Error("a held deletion is executed although no user confirmed or explained it")
		}
		if verdict == Hold && !IsUnexplained(facts) && !facts.RestoreUnconfirmed {
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
		more.ClusterUnregistering = facts.ClusterUnregistering || rapid.Bool().Draw(t, "more leaves")
		more.Descheduled = facts.Descheduled || rapid.Bool().Draw(t, "more descheduled")
		more.PlacementChanged = facts.PlacementChanged || rapid.Bool().Draw(t, "more asked")
		more.Excluded = facts.Excluded || rapid.Bool().Draw(t, "more excluded")
		more.MovedWhileUnreachable = facts.MovedWhileUnreachable || rapid.Bool().Draw(t, "more moved")
		more.Confirmed = facts.Confirmed || rapid.Bool().Draw(t, "more confirmed")
		more.WasHeld = facts.WasHeld && rapid.Bool().Draw(t, "still held")
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
		fewer.Cluster.Unexplained -= rapid.IntRange(0, scale.Cluster.Unexplained).Draw(t, "fewer")
		fewer.Fleet.Unexplained -= rapid.IntRange(scale.Cluster.Unexplained-fewer.Cluster.Unexplained, scale.Fleet.Unexplained).Draw(t, "fewer in all")
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
		"all of a small installation":               {Burst{Unexplained: 99, Works: 99}, false},
		"a tenth of a large one":                    {Burst{Unexplained: 1000, Works: 10_000}, false},
		"more than a tenth":                         {Burst{Unexplained: 1001, Works: 10_000}, true},
		"five of twenty Works in each of thirty":    {Burst{Unexplained: 150, Works: 600}, true},
		"nineteen of a thousand in each of hundred": {Burst{Unexplained: 1900, Works: 100_000}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := DefaultLimits().Fleet.IsExceeded(test.burst); got != test.want {
				t.Errorf("Exceeded = %v", got)
			}
		})
	}
}
