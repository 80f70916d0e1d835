package integration

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// When the definition of a kind is deleted nobody tries in vain to read what was
// bound of it, and other work goes on. Whether the binding goes too is the garbage
// collector's affair: it takes the binding along if it had come to know the kind.
func TestABindingWhoseKindIsDefinedNoMoreIsLeftInPeace(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	kind := widgets()
	kind.Name, kind.Spec.Group = "widgets.example.org", "example.org"
	definition := define(t, env.Karmada, kind)
	inside := define(t, member(env, member1), kind)
	t.Cleanup(func() {
		if err := member(env, member1).Delete(context.WithoutCancel(t.Context()), inside); err != nil {
			t.Error(err)
		}
	})
	template := widget(namespace)
	template.SetAPIVersion("example.org/v1")
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "widgets"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.org/v1", Kind: "Widget"}},
			Placement:         on(member1), PropagateDeps: true,
		},
	}
	env.Create(t, policy)
	testenv.Eventually(t, "the control plane serves the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template.DeepCopy()))
	})
	inMember(t, env, member1, template, exists)
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wheel-widget"}}
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
	})

	deleteObject(t, env.Karmada, definition)
	awaitGone(t, env.Karmada, definition)
	// Every binding is looked at after a start. Events are writes as well.
	startsSilently(t, env)
	marker := configMap(namespace, "marker")
	env.Create(t, policyFor(t, on(member1), marker), marker)
	inMember(t, env, member1, marker, exists)
}
