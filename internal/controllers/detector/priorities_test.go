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
	class := blank(priorityClasses)
	class.SetName(name)
	class.Object["value"] = value
	return class
}

func prioritized(p policy.Object, class string) policy.Object {
	p.PropagationSpec().SchedulePriority = &policyv1alpha1.SchedulePriority{
		PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: class,
	}
	return p
}

func TestWhichPoliciesAPriorityClassWakes(t *testing.T) {
	high, low := priorityClass("high", 100), priorityClass("low", 1)
	relabelled := priorityClass("high", 100)
	relabelled.SetLabels(map[string]string{"a": "b"})
	tests := map[string]struct {
		scope         int
		before, after *unstructured.Unstructured
		initial       bool
		want          []string
	}{
		"a class that appears wakes those that name it": {after: high, want: []string{"shop/a"}},
		"in either scope":                                    {scope: 1, after: high, want: []string{"/c"}},
		"a class that nobody names wakes nobody":             {after: priorityClass("other", 1)},
		"one that a policy named before wakes it no more":    {after: low},
		"not at the start, when every template is looked at": {after: high, initial: true},
		"another value wakes":                                {before: priorityClass("high", 7), after: high, want: []string{"shop/a"}},
		"another label does not":                             {before: high, after: relabelled},
		"the end of a class does not":                        {before: high},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.policies.put(prioritized(propagation("a"), "low"))
			h.policies.put(prioritized(propagation("a"), "high"))
			h.policies.put(propagation("b"))
			h.policies.put(prioritized(clusterPropagation("c"), "high"))
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			handle := (&policySource{detector: h.detector, scope: scopes[tc.scope]}).onPriorityClasses(queue)
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
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheCatalogForgetsClassesThatNobodyNames(t *testing.T) {
	c := newCatalog()
	c.put(prioritized(propagation("a"), "high"))
	c.put(propagation("a"))
	c.put(prioritized(propagation("b"), "low"))
	c.delete(propagation("b"))
	if len(c.classes) != 0 {
		t.Errorf("kept %v", c.classes)
	}
}

func TestABindingGetsTheValueOfThePriorityClass(t *testing.T) {
	p := prioritized(propagation("p"), "high")
	h := newHouse(t, deployment(1), p)
	failed := func() bool {
		h.writes = nil
		_, err := templateReconciler{h.detector}.Reconcile(t.Context(), request{web, policy.PolicyChanged})
		return err != nil
	}
	if !failed() || h.binding() != nil {
		t.Fatal("a binding is made although the class does not exist")
	}
	expectTold(t, "without the class", h.told(), "Warning ApplyPolicyFailed")
	if err := h.karmada.Create(t.Context(), priorityClass("high", 100)); err != nil {
		t.Fatal(err)
	}
	h.pass(policy.PolicyChanged)
	if got := h.binding().Spec.SchedulePriority; got == nil || got.Priority != 100 {
		t.Errorf("priority %+v", got)
	}
	h.options.PriorityScheduling = false
	h.pass(policy.PolicyChanged)
	if got := h.binding().Spec.SchedulePriority; got != nil {
		t.Errorf("priority %+v without the feature", got)
	}
	h.options.PriorityScheduling = true
	p.PropagationSpec().SchedulePriority.PriorityClassSource = "PodPriorityClass"
	h.policies.put(p)
	if !failed() {
		t.Error("another source is taken")
	}
}
