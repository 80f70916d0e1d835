package detector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func TestPreemptorsAfterPriorityChange(t *testing.T) {
	withPriority := func(name string, priority int32) *policyv1alpha1.PropagationPolicy {
		p := newPropagationPolicy(name)
		p.Spec.Priority, p.Spec.Preemption = new(priority), policyv1alpha1.PreemptAlways
		return p
	}
	c := newPolicyCatalog()
	for _, p := range []policy.Object{withPriority("low", 1), withPriority("mid", 5), withPriority("high", 8), withPriority("top", 20), newClusterPropagationPolicy("other")} {
		c.put(p)
	}
	names := func(all []policy.Object) (got []string) {
		for _, p := range all {
			got = append(got, p.GetName())
		}
		return got
	}
	if diff := cmp.Diff([]string{"high", "mid"}, names(c.preemptorsAfterUpdate(withPriority("p", 10), withPriority("p", 2)))); diff != "" {
		t.Errorf("when a priority falls (-want +got):\n%s", diff)
	}
	if got := c.preemptorsAfterUpdate(withPriority("p", 2), withPriority("p", 10)); len(got) != 0 {
		t.Errorf("when a priority rises: %v", names(got))
	}
	c.delete(withPriority("high", 8))
	if diff := cmp.Diff([]string{"mid"}, names(c.preemptorsAfterUpdate(withPriority("p", 10), withPriority("p", 2)))); diff != "" {
		t.Errorf("after one was deleted (-want +got):\n%s", diff)
	}
}

func TestCatalogRemovesUnusedPriorityClasses(t *testing.T) {
	c := newPolicyCatalog()
	c.put(withPriorityClass(newPropagationPolicy("a"), "high"))
	c.put(newPropagationPolicy("a"))
	c.put(withPriorityClass(newPropagationPolicy("b"), "low"))
	c.delete(newPropagationPolicy("b"))
	if len(c.byPriorityClass) != 0 {
		t.Errorf("the catalog still holds %v", c.byPriorityClass)
	}
}

func TestCatalogFollowsPolicies(t *testing.T) {
	template := &unstructured.Unstructured{}
	template.SetAPIVersion("apps/v1")
	template.SetKind("Deployment")
	template.SetNamespace("shop")
	template.SetName("web")
	c, first := newPolicyCatalog(), newPropagationPolicy("p")
	fallback := newClusterPropagationPolicy("fallback")
	decided := func() policy.Object {
		decision, ok := c.decide(template).(policy.ApplyPolicy)
		if !ok {
			return nil
		}
		return decision.Policy
	}
	if decided() != nil {
		t.Error("an empty catalog decides")
	}
	c.put(fallback)
	c.put(withPriorityClass(first, "high"))
	if decided() != policy.Object(first) || c.get("shop", "p") != policy.Object(first) || c.get("", "fallback") != policy.Object(fallback) {
		t.Error("the catalog does not hold the policies that were put")
	}
	if diff := cmp.Diff([]policy.Object{first}, c.withPriorityClass("high")); diff != "" {
		t.Errorf("policies of the class (-want +got):\n%s", diff)
	}
	replaced := newPropagationPolicy("p")
	replaced.Spec.ResourceSelectors[0].Name = "wbe"
	c.put(replaced)
	if decided() != policy.Object(fallback) || len(c.withPriorityClass("high")) != 0 {
		t.Error("the catalog still uses the policy that was replaced")
	}
	c.delete(fallback)
	if decided() != nil {
		t.Error("a deleted policy decides")
	}
	if miss, ok := c.nearestMiss(template); !ok || miss.Policy != policy.Object(replaced) {
		t.Errorf("nearest miss %v, %v", miss, ok)
	}
}
