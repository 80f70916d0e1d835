package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

func TestDescribeSuspension(t *testing.T) {
	bound := func(by Object, suspension *workv1alpha2.Suspension) binding.Object {
		b := &workv1alpha2.ResourceBinding{}
		b.Name = "web-deployment"
		b.Spec.Suspension = suspension
		if by != nil {
			ClaimOf(by).Apply(b)
		}
		return b
	}
	dispatching := func(value bool) *workv1alpha2.Suspension {
		return &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: &value}}
	}
	on := func(clusters ...string) *workv1alpha2.Suspension {
		return &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: clusters}}}
	}
	both := on("m1")
	both.Scheduling = new(true)
	web, all := newPolicy("shop", "web"), newPolicy("", "all")
	const end = "Suspension ended: changes are scheduled and dispatched to all clusters"
	tests := map[string]struct {
		before, after binding.Object
		suspended     bool
		want          string
	}{
		"a new binding without suspension":    {after: bound(web, nil)},
		"a new binding of a suspended policy": {after: bound(web, dispatching(true)), suspended: true, want: "PropagationPolicy shop/web suspends dispatching: changes reach no cluster"},
		"a policy that becomes suspended":     {before: bound(all, dispatching(false)), after: bound(all, dispatching(true)), suspended: true, want: "ClusterPropagationPolicy all suspends dispatching: changes reach no cluster"},
		"a policy that stays suspended":       {before: bound(web, dispatching(true)), after: bound(web, dispatching(true))},
		"one cluster":                         {before: bound(web, nil), after: bound(web, on("m1")), suspended: true, want: "PropagationPolicy shop/web suspends dispatching: changes do not reach cluster m1"},
		"several clusters in order":           {before: bound(web, on("m1")), after: bound(web, on("m2", "m1")), suspended: true, want: "PropagationPolicy shop/web suspends dispatching: changes do not reach clusters m1, m2"},
		"another order of the same clusters":  {before: bound(web, on("m1", "m2")), after: bound(web, on("m2", "m1"))},
		"an empty list of clusters":           {before: bound(web, nil), after: bound(web, on())},
		"scheduling too":                      {before: bound(web, nil), after: bound(web, both), suspended: true, want: "PropagationPolicy shop/web suspends dispatching: changes do not reach cluster m1; binding web-deployment suspends scheduling: its clusters stay as they are"},
		"a binding that no policy claims":     {before: bound(nil, nil), after: bound(nil, dispatching(true)), suspended: true, want: "binding web-deployment suspends dispatching: changes reach no cluster"},
		"the end of the suspension":           {before: bound(web, on("m1")), after: bound(web, nil), want: end},
		"a suspension that is switched off":   {before: bound(web, dispatching(true)), after: bound(web, dispatching(false)), want: end},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := DescribeSuspension(test.before, test.after)
			if diff := cmp.Diff(SuspensionChange{test.suspended, test.want}, got); diff != "" {
				t.Errorf("suspension change (-want +got):\n%s", diff)
			}
		})
	}
}
