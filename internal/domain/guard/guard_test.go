package guard

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	// budgeted are limits with a deletion budget. noBudget are the default limits.
	budgeted = Limits{ChangedCluster: 20, Namespace: 50, Fleet: 100}
	noBudget = DefaultLimits()
	few      = Counts{ChangedCluster: 19, Namespace: 50, Fleet: 100}
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		facts  Facts
		counts Counts
		want   Action
		reason Reason
	}{
		"a Work without an owner":                             {Facts{}, few, Delete, NoReason},
		"all Works of an unregistering cluster":               {Facts{ClusterUnregistering: true, Owner: OwnerDropsWork}, few, Delete, NoReason},
		"desired Works of an unregistering cluster":           {Facts{ClusterUnregistering: true, Owner: OwnerRequiresWork}, few, Delete, NoReason},
		"unconfirmed restore":                                 {Facts{RestoreUnconfirmed: true}, few, Hold, ReasonRestoreUnconfirmed},
		"unconfirmed restore, unregistering cluster":          {Facts{RestoreUnconfirmed: true, ClusterUnregistering: true}, few, Hold, ReasonRestoreUnconfirmed},
		"unconfirmed restore, desired Work":                   {Facts{RestoreUnconfirmed: true, Owner: OwnerRequiresWork}, few, Keep, NoReason},
		"a desired Work":                                      {Facts{Owner: OwnerRequiresWork}, few, Keep, NoReason},
		"a desired Work that was held and confirmed":          {Facts{Owner: OwnerRequiresWork, IsConfirmed: true, HeldFor: ReasonBudgetExceeded}, few, Keep, NoReason},
		"allowed before and desired again":                    {Facts{Owner: OwnerRequiresWork, AlreadyAllowed: true}, few, Keep, NoReason},
		"nothing explains the deletion":                       {Facts{Owner: OwnerDropsWork}, few, Hold, ReasonNotReplaced},
		"nothing explains the deletion, confirmed by a user":  {Facts{Owner: OwnerDropsWork, IsConfirmed: true}, few, Delete, NoReason},
		"nothing explains the deletion, rejected by a user":   {Facts{Owner: OwnerDropsWork, IsRejected: true}, few, Keep, NoReason},
		"a deletion that was allowed before":                  {Facts{Owner: OwnerDropsWork, AlreadyAllowed: true}, few, Delete, NoReason},
		"a recorded departure":                                {Facts{Owner: OwnerDropsWork, HasDeparted: true}, few, Delete, NoReason},
		"a cluster that the placement excludes":               {Facts{Owner: OwnerDropsWork, Excluded: true}, few, Delete, NoReason},
		"healthy copies in other clusters":                    {Facts{Owner: OwnerDropsWork, IsReplaced: true}, few, Delete, NoReason},
		"a departure, and the cluster is desired again":       {Facts{Owner: OwnerRequiresWork, HasDeparted: true}, few, Keep, NoReason},
		"a departure, and the binding is missing":             {Facts{Owner: OwnerGone, HasDeparted: true, Template: TemplateInUse}, few, Hold, ReasonTemplateInUse},
		"a few workloads excluded by a label":                 {Facts{Owner: OwnerDropsWork, Unmatched: true, LacksTargets: true}, few, Delete, NoReason},
		"excluded by a label, and not replaced yet":           {Facts{Owner: OwnerDropsWork, Unmatched: true}, few, Hold, ReasonNotReplaced},
		"excluded by a label, and replaced":                   {Facts{Owner: OwnerDropsWork, Unmatched: true, IsReplaced: true}, few, Delete, NoReason},
		"a Namespace with objects that are not decided":       {Facts{Owner: OwnerGone, Template: TemplateDeleted, ContainsUndecided: true}, few, Hold, ReasonNamespaceInUse},
		"the same, confirmed by a user":                       {Facts{Owner: OwnerGone, Template: TemplateDeleted, ContainsUndecided: true, IsConfirmed: true}, few, Delete, NoReason},
		"twenty workloads excluded by a label":                {Facts{Owner: OwnerDropsWork, Unmatched: true}, Counts{ChangedCluster: 20}, Hold, ReasonClusterChanged},
		"excluded by a label, with copies in other clusters":  {Facts{Owner: OwnerDropsWork, Unmatched: true, IsReplaced: true}, Counts{ChangedCluster: 20}, Hold, ReasonClusterChanged},
		"excluded by a label after an ended move":             {Facts{Owner: OwnerDropsWork, Unmatched: true, HasDeparted: true}, Counts{ChangedCluster: 20}, Delete, NoReason},
		"excluded by a label, confirmed by a user":            {Facts{Owner: OwnerDropsWork, Unmatched: true, IsConfirmed: true}, Counts{ChangedCluster: 20}, Delete, NoReason},
		"excluded by a label stays held after the others":     {Facts{Owner: OwnerDropsWork, Unmatched: true, HeldFor: ReasonClusterChanged}, few, Hold, ReasonClusterChanged},
		"excluded by a label that is restored":                {Facts{Owner: OwnerDropsWork, IsReplaced: true, HeldFor: ReasonClusterChanged}, few, Hold, ReasonClusterChanged},
		"excluded by a label, explained later":                {Facts{Owner: OwnerDropsWork, Unmatched: true, HeldFor: ReasonClusterChanged, HasDeparted: true}, few, Delete, NoReason},
		"a suspended cluster":                                 {Facts{Owner: OwnerDropsWork, HasDeparted: true, IsSuspended: true}, few, Hold, ReasonSuspended},
		"a suspended cluster, confirmed by a user":            {Facts{Owner: OwnerDropsWork, IsConfirmed: true, IsSuspended: true}, few, Hold, ReasonSuspended},
		"a suspended cluster of a deleted template":           {Facts{Owner: OwnerGone, IsSuspended: true}, few, Hold, ReasonSuspended},
		"a suspended cluster that is desired":                 {Facts{Owner: OwnerRequiresWork, IsSuspended: true}, few, Keep, NoReason},
		"a suspended cluster that unregisters":                {Facts{ClusterUnregistering: true, IsSuspended: true}, few, Delete, NoReason},
		"a template that was not read":                        {Facts{Owner: OwnerGone}, few, Hold, ReasonTemplateNotRead},
		"a template that was deleted":                         {Facts{Owner: OwnerGone, Template: TemplateDeleted}, few, Delete, NoReason},
		"a template that no policy claims":                    {Facts{Owner: OwnerGone, Template: TemplateUnclaimed}, few, Delete, NoReason},
		"a missing binding with a claimed template":           {Facts{Owner: OwnerGone, Template: TemplateInUse}, few, Hold, ReasonTemplateInUse},
		"a template that cannot be read":                      {Facts{Owner: OwnerGone, Template: TemplateUnreadable}, few, Hold, ReasonTemplateUnreadable},
		"a template of a kind that is not served":             {Facts{Owner: OwnerGone, Template: TemplateNotServed}, few, Hold, ReasonTemplateNotServed},
		"a template that cannot be read, confirmed by a user": {Facts{Owner: OwnerGone, Template: TemplateUnreadable, IsConfirmed: true}, few, Delete, NoReason},
		"deleted templates above the budget of the namespace": {Facts{Owner: OwnerGone, Template: TemplateDeleted}, Counts{Namespace: 51}, Hold, ReasonBudgetExceeded},
		"deleted templates above the budget of the fleet":     {Facts{Owner: OwnerGone, Template: TemplateDeleted}, Counts{Namespace: 3, Fleet: 101}, Hold, ReasonBudgetExceeded},
		"above the budget, confirmed by a user":               {Facts{Owner: OwnerGone, Template: TemplateDeleted, IsConfirmed: true}, Counts{Namespace: 51}, Delete, NoReason},
		"above the budget, rejected by a user":                {Facts{Owner: OwnerGone, Template: TemplateDeleted, IsRejected: true}, Counts{Namespace: 51}, Keep, NoReason},
		"above the budget, and the template is created again": {Facts{Owner: OwnerGone, Template: TemplateDeleted, IsRecreated: true}, Counts{Namespace: 51}, Keep, NoReason},
		"within the budget, and the template is created again": {
			Facts{Owner: OwnerGone, Template: TemplateDeleted, IsRecreated: true}, few, Delete, NoReason},
		"held for the budget stays held after the others": {Facts{Owner: OwnerGone, Template: TemplateDeleted, HeldFor: ReasonBudgetExceeded}, few, Hold, ReasonBudgetExceeded},
		"a changed placement that stops workloads":        {Facts{Owner: OwnerDropsWork, HasDeparted: true}, Counts{Namespace: 51}, Hold, ReasonBudgetExceeded},
		"a scale-down leaves copies and needs no budget":  {Facts{Owner: OwnerDropsWork, HasDeparted: true, IsReplaced: true}, Counts{Namespace: 51}, Delete, NoReason},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.facts.DeletionAge = max(test.facts.DeletionAge, GatherPeriod)
			if got := Decide(test.facts, test.counts, budgeted); got.Action != test.want || got.Reason != test.reason {
				t.Errorf("decision %+v; want action %d, reason %d", got, test.want, test.reason)
			}
		})
	}
}

// TestHeldDeletionIsDecidedAgain checks when a held deletion is decided again, and from when users are
// told about it.
func TestHeldDeletionIsDecidedAgain(t *testing.T) {
	inUse, notServed := Facts{Owner: OwnerGone, Template: TemplateInUse}, Facts{Owner: OwnerGone, Template: TemplateNotServed}
	unreachable, counting := Facts{Owner: OwnerGone, ClusterUnreachable: true}, Facts{Owner: OwnerGone, Template: TemplateDeleted}
	tests := map[string]struct {
		facts                Facts
		counts               Counts
		deletionAge, holdAge time.Duration
		recheckAfter         time.Duration
		isReported           bool
	}{
		"at first":                             {facts: inUse, recheckAfter: minRecheckDelay},
		"the delay doubles":                    {facts: inUse, deletionAge: 2 * time.Second, holdAge: 2 * time.Second, recheckAfter: 2 * time.Second},
		"users are told in time":               {facts: inUse, deletionAge: 4 * time.Second, holdAge: 4 * time.Second, recheckAfter: time.Second},
		"users are told":                       {facts: inUse, deletionAge: 5 * time.Second, holdAge: 5 * time.Second, recheckAfter: 5 * time.Second, isReported: true},
		"the delay is limited":                 {facts: inUse, deletionAge: time.Hour, holdAge: time.Hour, recheckAfter: maxRecheckDelay, isReported: true},
		"after a restart":                      {facts: inUse, deletionAge: time.Hour, recheckAfter: minRecheckDelay, isReported: true},
		"a kind that is not served any more":   {facts: notServed, recheckAfter: minRecheckDelay, isReported: true},
		"an unreachable cluster":               {facts: unreachable, deletionAge: time.Hour, holdAge: time.Hour, recheckAfter: maxRecheckDelay},
		"until all deletions are counted":      {facts: counting, counts: Counts{Namespace: 1, Fleet: 1}, deletionAge: time.Second, recheckAfter: GatherPeriod - time.Second},
		"a deletion that preserves its object": {facts: Facts{Owner: OwnerGone, Template: TemplateInUse, PreservesObjects: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.facts.DeletionAge, test.facts.HoldAge = test.deletionAge, test.holdAge
			if got := Decide(test.facts, test.counts, budgeted); got.RecheckAfter != test.recheckAfter || got.IsReported != test.isReported {
				t.Errorf("decision %+v", got)
			}
		})
	}
}

func TestDefaultLimitsHaveNoBudget(t *testing.T) {
	facts := Facts{Owner: OwnerGone, Template: TemplateDeleted}
	if got := Decide(facts, Counts{}, noBudget); got.Action != Delete {
		t.Errorf("decision %+v", got)
	}
	if _, budget := noBudget.Applicable(facts); budget {
		t.Error("deletions are counted")
	}
}

func drawFacts(t *rapid.T) Facts {
	return Facts{
		ClusterUnregistering: rapid.Bool().Draw(t, "unregistering"),
		Owner:                Owner(rapid.IntRange(int(OwnerNone), int(OwnerGone)).Draw(t, "owner")),
		IsSuspended:          rapid.Bool().Draw(t, "suspended"),
		HasDeparted:          rapid.Bool().Draw(t, "departed"),
		Excluded:             rapid.Bool().Draw(t, "excluded"),
		Unmatched:            rapid.Bool().Draw(t, "unmatched"),
		LacksTargets:         rapid.Bool().Draw(t, "lacks targets"),
		ContainsUndecided:    rapid.Bool().Draw(t, "contains undecided"),
		IsReplaced:           rapid.Bool().Draw(t, "replaced"),
		Template:             TemplateState(rapid.IntRange(int(TemplateNotRead), int(TemplateUnclaimed)).Draw(t, "template")),
		IsRecreated:          rapid.Bool().Draw(t, "recreated"),
		HeldFor:              rapid.SampledFrom([]Reason{NoReason, ReasonClusterChanged, ReasonBudgetExceeded}).Draw(t, "held for"),
		IsConfirmed:          rapid.Bool().Draw(t, "confirmed"),
		IsRejected:           rapid.Bool().Draw(t, "rejected"),
		RestoreUnconfirmed:   rapid.Bool().Draw(t, "restored"),
		AlreadyAllowed:       rapid.Bool().Draw(t, "allowed"),
		ClusterUnreachable:   rapid.Bool().Draw(t, "unreachable"),
		AgentLostPermissions: rapid.Bool().Draw(t, "lost permissions"),
		DeletionAge:          time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "deletion age")),
		HoldAge:              time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "hold age")),
	}
}

// drawCounts draws the counts of a deletion. Counts to which no limit applies are 0.
func drawCounts(t *rapid.T, f Facts) Counts {
	changedCluster, budget := budgeted.Applicable(f)
	var c Counts
	if changedCluster {
		c.ChangedCluster = rapid.IntRange(1, 40).Draw(t, "in the cluster")
	}
	if budget {
		c.Namespace = rapid.IntRange(1, 100).Draw(t, "in the namespace")
		c.Fleet = c.Namespace + rapid.IntRange(0, 100).Draw(t, "in other namespaces")
	}
	return c
}

func TestDecisionsAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		counts := drawCounts(t, facts)
		decision := Decide(facts, counts, budgeted)
		if isHeld := decision.Action == Hold; isHeld != (decision.Reason != NoReason) || isHeld != (decision.RecheckAfter > 0) || decision.IsReported && !isHeld {
			t.Errorf("decision %+v", decision)
		}
		if decision.RecheckAfter > maxRecheckDelay {
			t.Errorf("the deletion is decided again after %s", decision.RecheckAfter)
		}
		if decision.Reason == ReasonTemplateNotRead && facts.Template != TemplateNotRead {
			t.Error("a template is read repeatedly")
		}
		if decision.Action != Delete {
			return
		}
		if facts.ClusterUnreachable && !facts.ClusterUnregistering || facts.AgentLostPermissions {
			t.Error("objects are deleted where no request can delete them")
		}
		if facts.RestoreUnconfirmed || facts.IsRejected {
			t.Error("a restored control plane deletes before a confirmation, or a rejected deletion is executed")
		}
		if facts.ClusterUnregistering || facts.Owner == OwnerNone {
			return
		}
		if facts.Owner == OwnerRequiresWork || facts.IsSuspended {
			t.Error("a desired object, or an object in a suspended cluster, is deleted")
		}
		if facts.IsConfirmed || facts.AlreadyAllowed {
			return
		}
		if facts.Owner == OwnerGone && facts.Template != TemplateDeleted && facts.Template != TemplateUnclaimed {
			t.Error("a missing binding counts as a deleted template")
		}
		if facts.Owner == OwnerDropsWork && !facts.HasDeparted && !facts.Excluded && !facts.IsReplaced && !facts.Unmatched {
			t.Error("an unexplained deletion is executed")
		}
		if facts.isUnmatchedOnly() && counts.ChangedCluster >= budgeted.ChangedCluster {
			t.Error("a change of the cluster deletes many workloads")
		}
		if facts.losesLastCopy() && (facts.HeldFor == ReasonBudgetExceeded || counts.Namespace > budgeted.Namespace || counts.Fleet > budgeted.Fleet) {
			t.Error("the budget is exceeded")
		}
	})
}

func TestMoreEvidenceNeverHoldsADeletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		counts := drawCounts(t, facts)
		if Decide(facts, counts, budgeted).Action != Delete {
			return
		}
		more := facts
		more.ClusterUnregistering = facts.ClusterUnregistering || rapid.Bool().Draw(t, "more unregistering")
		more.HasDeparted = facts.HasDeparted || rapid.Bool().Draw(t, "more departed")
		more.Excluded = facts.Excluded || rapid.Bool().Draw(t, "more excluded")
		more.IsReplaced = facts.IsReplaced || rapid.Bool().Draw(t, "more replaced")
		more.IsConfirmed = facts.IsConfirmed || rapid.Bool().Draw(t, "more confirmed")
		if facts.HeldFor != NoReason && rapid.Bool().Draw(t, "no longer held") {
			more.HeldFor = NoReason
		}
		if got := Decide(more, counts, budgeted); got.Action != Delete {
			t.Errorf("%+v is deleted, but %+v gives %+v", facts, more, got)
		}
	})
}

func TestFewerDeletionsNeverHoldADeletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		counts := drawCounts(t, facts)
		if Decide(facts, counts, budgeted).Action != Delete {
			return
		}
		fewer := Counts{
			ChangedCluster: rapid.IntRange(0, counts.ChangedCluster).Draw(t, "fewer in the cluster"),
			Namespace:      rapid.IntRange(0, counts.Namespace).Draw(t, "fewer in the namespace"),
			Fleet:          rapid.IntRange(0, counts.Fleet).Draw(t, "fewer in total"),
		}
		if got := Decide(facts, fewer, budgeted); got.Action != Delete {
			t.Errorf("%+v is deleted at %+v, but %+v gives %+v", facts, counts, fewer, got)
		}
	})
}
