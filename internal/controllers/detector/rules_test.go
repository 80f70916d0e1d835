package detector

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/access/watches/watchestest"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop/looptest"
)

// fixedReplicas returns a rule that finds n replicas in each template.
func fixedReplicas(n int32) interpreter.Rules {
	return interpreter.Rules{Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
		return n, nil, nil
	}}
}

func TestChangedRuleReachesBindings(t *testing.T) {
	lazy := propagationPolicy("p")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	queued := []templateRequest{webRef.request(policy.RulesChanged)}
	tests := map[string]struct {
		policy   *policyv1alpha1.PropagationPolicy
		kind     schema.GroupVersionKind
		rules    interpreter.Rules
		queued   []templateRequest
		writes   []string
		replicas int32
	}{
		"another rule of the kind":           {propagationPolicy("p"), deployments, fixedReplicas(7), queued, []string{"patch ResourceBinding"}, 7},
		"a rule with the same result":        {propagationPolicy("p"), deployments, fixedReplicas(2), queued, nil, 2},
		"a Lazy policy waits for the user":   {lazy, deployments, fixedReplicas(7), queued, nil, 2},
		"a rule of a kind without a watch":   {propagationPolicy("p"), schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Job"}, fixedReplicas(7), nil, nil, 2},
		"a rule of another version":          {propagationPolicy("p"), schema.GroupVersionKind{Group: "apps", Version: "v2", Kind: "Deployment"}, fixedReplicas(7), nil, nil, 2},
		"a rule for a template of no policy": {nil, deployments, fixedReplicas(7), queued, nil, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{deployment(1)}
			if test.policy != nil {
				objects = append(objects, test.policy.DeepCopy())
			}
			h, table := newFixture(t, objects...), &interpreters.Table{}
			manager := watchestest.NewManager(t.Context(), h.karmada)
			reader := template.NewReader(manager, h.karmada)
			subscription, err := manager.Subscribe(watches.ControlPlane, watches.Query{Kind: deployments}, watches.Subscriber{})
			if err != nil || !subscription.WaitForList(t.Context()) {
				t.Fatal("the templates are not watched", err)
			}
			h.binder.Rules, h.ruleTriggers.Rules = table, table
			h.ruleTriggers.templates = reader
			table.Set(deployments, fixedReplicas(2))
			h.reconcile(policy.TemplateChanged)
			got := looptest.QueuedBy(t, h.ruleTriggers.source, func() { table.Set(test.kind, test.rules) })
			if diff := cmp.Diff(test.queued, got); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
			_, writes := h.reconcile(policy.RulesChanged)
			expectWrites(t, "after the change", writes, test.writes...)
			if bound := h.binding(); bound == nil && test.replicas != 0 || bound != nil && bound.Spec.Replicas != test.replicas {
				t.Errorf("binding %v, want %d replicas", bound, test.replicas)
			}
		})
	}
}

func TestFailedInterpretationIsReportedOnTheBinding(t *testing.T) {
	h, table := newFixture(t, deployment(1), propagationPolicy("p")), &interpreters.Table{}
	h.binder.Rules = table
	failing := func(message string) interpreter.Rules {
		return interpreter.Rules{Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
			return 0, nil, errors.New(message)
		}}
	}
	steps := []struct {
		name     string
		rules    interpreter.Rules
		writes   []string
		replicas int32
		// status and message are those of the condition.
		status  metav1.ConditionStatus
		message string
	}{
		{"a template without a binding", failing("line 3"), nil, 0, "", ""},
		{"a success", fixedReplicas(2), []string{"create ResourceBinding"}, 2, "", ""},
		{"a failure", failing("line 3"), []string{"update status of ResourceBinding"}, 2, metav1.ConditionFalse, "line 3"},
		{"the same failure", failing("line 3"), nil, 2, metav1.ConditionFalse, "line 3"},
		{"another failure", failing("line 4"), []string{"update status of ResourceBinding"}, 2, metav1.ConditionFalse, "line 4"},
		{"a success with another number", fixedReplicas(7), []string{"update status of ResourceBinding", "patch ResourceBinding"}, 7, metav1.ConditionTrue, "succeeds again"},
		{"another success", fixedReplicas(7), nil, 7, metav1.ConditionTrue, "succeeds again"},
	}
	for _, step := range steps {
		table.Set(deployments, step.rules)
		h.writes = nil
		_, err := h.templateReconciler.Reconcile(t.Context(), webRef.request(policy.RulesChanged))
		if fails := step.status == metav1.ConditionFalse || step.replicas == 0; fails != (err != nil) {
			t.Errorf("%s: err = %v", step.name, err)
		}
		bound := h.binding()
		if bound == nil {
			if step.replicas != 0 {
				t.Errorf("%s: there is no binding", step.name)
			}
			continue
		}
		expectWrites(t, step.name, h.writes, step.writes...)
		if bound.Spec.Replicas != step.replicas {
			t.Errorf("%s: %d replicas, want %d", step.name, bound.Spec.Replicas, step.replicas)
		}
		var status metav1.ConditionStatus
		var message string
		if condition := conditions.Get(bound.Status.Conditions, workv1alpha2.TemplateInterpreted); condition != nil {
			status, message = condition.Status, condition.Message
		}
		if status != step.status || !strings.Contains(message, step.message) {
			t.Errorf("%s: condition %q %q, want %q %q", step.name, status, message, step.status, step.message)
		}
	}
}
