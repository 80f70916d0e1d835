package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/controllers/detector/detectortest"
	"karmada.io/karmada/internal/domain/policy"
)

func TestPreemptorsAfterPriorityChange(t *testing.T) {
	withPriority := func(name string, priority int32) *policyv1alpha1.PropagationPolicy {
		p := detectortest.PropagationPolicy(name)
		p.Spec.Priority, p.Spec.Preemption = new(priority), policyv1alpha1.PreemptAlways
		return p
	}
	c := New()
	for _, p := range []policy.Object{withPriority("low", 1), withPriority("mid", 5), withPriority("high", 8), withPriority("top", 20), detectortest.ClusterPropagationPolicy("other")} {
		c.Put(p)
	}
	names := func(all []policy.Object) (got []string) {
		for _, p := range all {
			got = append(got, p.GetName())
		}
		return got
	}
	if diff := cmp.Diff([]string{"high", "mid"}, names(c.PreemptorsAfterUpdate(withPriority("p", 10), withPriority("p", 2)))); diff != "" {
		t.Errorf("when a priority falls (-want +got):\n%s", diff)
	}
	if got := c.PreemptorsAfterUpdate(withPriority("p", 2), withPriority("p", 10)); len(got) != 0 {
		t.Errorf("when a priority rises: %v", names(got))
	}
	c.Delete(withPriority("high", 8))
	if diff := cmp.Diff([]string{"mid"}, names(c.PreemptorsAfterUpdate(withPriority("p", 10), withPriority("p", 2)))); diff != "" {
		t.Errorf("after one was deleted (-want +got):\n%s", diff)
	}
}

func TestCatalogRemovesUnusedPriorityClasses(t *testing.T) {
	c := New()
	c.Put(detectortest.WithPriorityClass(detectortest.PropagationPolicy("a"), "high"))
	c.Put(detectortest.PropagationPolicy("a"))
	c.Put(detectortest.WithPriorityClass(detectortest.PropagationPolicy("b"), "low"))
	c.Delete(detectortest.PropagationPolicy("b"))
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
	c, first := New(), detectortest.PropagationPolicy("p")
	fallback := detectortest.ClusterPropagationPolicy("fallback")
	decided := func() policy.Object {
		decision, ok := c.Decide(template).(policy.ApplyPolicy)
		if !ok {
			return nil
		}
		return decision.Policy
	}
	if decided() != nil {
		t.Error("an empty catalog decides")
	}
	c.Put(fallback)
	c.Put(detectortest.WithPriorityClass(first, "high"))
	if decided() != policy.Object(first) || c.Get("shop", "p") != policy.Object(first) || c.Get("", "fallback") != policy.Object(fallback) {
		t.Error("the catalog does not hold the policies that were put")
	}
	if diff := cmp.Diff([]policy.Object{first}, c.WithPriorityClass("high")); diff != "" {
		t.Errorf("policies of the class (-want +got):\n%s", diff)
	}
	replaced := detectortest.PropagationPolicy("p")
	replaced.Spec.ResourceSelectors[0].Name = "wbe"
	c.Put(replaced)
	if decided() != policy.Object(fallback) || len(c.WithPriorityClass("high")) != 0 {
		t.Error("the catalog still uses the policy that was replaced")
	}
	c.Delete(fallback)
	if decided() != nil {
		t.Error("a deleted policy decides")
	}
	if miss, ok := c.NearestMiss(template); !ok || miss.Policy != policy.Object(replaced) {
		t.Errorf("nearest miss %v, %v", miss, ok)
	}
}
