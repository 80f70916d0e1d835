package detector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func priorityClass(name string, value int64) *unstructured.Unstructured {
	class := newObject(priorityClassKind)
	class.SetName(name)
	class.Object["value"] = value
	return class
}

func withPriorityClass(p policy.Object, class string) policy.Object {
	p.PropagationSpec().SchedulePriority = &policyv1alpha1.SchedulePriority{
		PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: class,
	}
	return p
}

func TestPriorityClassQueuesPolicies(t *testing.T) {
	high, low := priorityClass("high", 100), priorityClass("low", 1)
	relabelled := priorityClass("high", 100)
	relabelled.SetLabels(map[string]string{"a": "b"})
	tests := map[string]struct {
		scope         int
		before, after *unstructured.Unstructured
		initial       bool
		want          []string
	}{
		"a new class queues the policies that name it": {after: high, want: []string{"shop/a"}},
		"a new class queues cluster policies":          {scope: 1, after: high, want: []string{"/c"}},
		"a class that no policy names":                 {after: priorityClass("other", 1)},
		"a class that a policy named before":           {after: low},
		"not in the initial list":                      {after: high, initial: true},
		"another value queues":                         {before: priorityClass("high", 7), after: high, want: []string{"shop/a"}},
		"another label does not queue":                 {before: high, after: relabelled},
		"a deleted class does not queue":               {before: high},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			h.policies.put(withPriorityClass(propagationPolicy("a"), "low"))
			h.policies.put(withPriorityClass(propagationPolicy("a"), "high"))
			h.policies.put(propagationPolicy("b"))
			h.policies.put(withPriorityClass(clusterPropagationPolicy("c"), "high"))
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			handle := (&policySource{detector: h.detector, scope: policyScopes[tc.scope]}).onPriorityClasses(queue)
			switch {
			case tc.before == nil:
				handle.OnAdd(tc.after, tc.initial)
			case tc.after == nil:
				handle.OnDelete(tc.before)
			default:
				handle.OnUpdate(tc.before, tc.after)
			}
			var got []string
			for queue.Len() > 0 {
				one, _ := queue.Get()
				queue.Done(one)
				got = append(got, one.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCatalogRemovesUnusedPriorityClasses(t *testing.T) {
	c := newPolicyCatalog()
	c.put(withPriorityClass(propagationPolicy("a"), "high"))
	c.put(propagationPolicy("a"))
	c.put(withPriorityClass(propagationPolicy("b"), "low"))
	c.delete(propagationPolicy("b"))
	if len(c.byPriorityClass) != 0 {
		t.Errorf("the catalog still holds %v", c.byPriorityClass)
	}
}

func TestBindingGetsPriorityClassValue(t *testing.T) {
	p := withPriorityClass(propagationPolicy("p"), "high")
	h := newFixture(t, deployment(1), p)
	failed := func() bool {
		h.writes = nil
		_, err := templateReconciler{h.detector}.Reconcile(t.Context(), templateRequest{webRef, policy.PolicyChanged})
		return err != nil
	}
	if !failed() || h.binding() != nil {
		t.Fatal("a binding was created although the class does not exist")
	}
	expectEvents(t, "without the class", h.takeEvents(), "Warning ApplyPolicyFailed")
	if err := h.karmada.Create(t.Context(), priorityClass("high", 100)); err != nil {
		t.Fatal(err)
	}
	h.reconcile(policy.PolicyChanged)
	if got := h.binding().Spec.SchedulePriority; got == nil || got.Priority != 100 {
		t.Errorf("priority %+v", got)
	}
	h.options.PriorityScheduling = false
	h.reconcile(policy.PolicyChanged)
	if got := h.binding().Spec.SchedulePriority; got != nil {
		t.Errorf("priority %+v without the feature", got)
	}
	h.options.PriorityScheduling = true
	p.PropagationSpec().SchedulePriority.PriorityClassSource = "PodPriorityClass"
	h.policies.put(p)
	if !failed() {
		t.Error("an unsupported source is accepted")
	}
}
