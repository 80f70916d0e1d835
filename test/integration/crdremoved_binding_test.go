package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// After the deletion of a CRD, no component retries to read templates of that kind, and other
// templates are propagated. The test does not check the binding, because the garbage collector may
// delete it if the garbage collector knew the kind before.
func TestBindingOfADeletedKindIsNotRetried(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	kind := newWidgetCRD()
	kind.Name, kind.Spec.Group = "widgets.example.org", "example.org"
	definition := createCRD(t, env.Karmada, kind)
	memberCRD := createCRD(t, memberClient(env, member1), kind)
	t.Cleanup(func() {
		if err := memberClient(env, member1).Delete(context.WithoutCancel(t.Context()), memberCRD); err != nil {
			t.Error(err)
		}
	})
	template := newWidget(namespace)
	template.SetAPIVersion("example.org/v1")
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "widgets"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.org/v1", Kind: "Widget"}},
			Placement:         placementOn(member1), PropagateDeps: true,
		},
	}
	env.Create(t, policy)
	testenv.Eventually(t, "the control plane serves the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template.DeepCopy()))
	})
	awaitInMember(t, env, member1, template, exists)
	rb := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wheel-widget"}}
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		return checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
	})

	deleteObject(t, env.Karmada, definition)
	awaitGone(t, env.Karmada, definition)
	// If the garbage collector observed the template before its kind was deleted, it deletes the
	// binding. The deletion of the Work is then held, which is written before the restart.
	testenv.Eventually(t, "the binding exists, or the deletion of its Work is decided", func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(rb), &workv1alpha2.ResourceBinding{}); !apierrors.IsNotFound(err) {
			return err
		}
		works := &workv1alpha1.WorkList{}
		if err := env.Karmada.List(ctx, works, client.InNamespace("karmada-es-"+member1)); err != nil {
			return err
		}
		for i := range works.Items {
			held := meta.FindStatusCondition(works.Items[i].Status.Conditions, workv1alpha1.WorkDeletionHeld)
			if strings.HasPrefix(works.Items[i].Name, "wheel-") && held == nil {
				return fmt.Errorf("the deletion of Work %s is not decided", works.Items[i].Name)
			}
		}
		return nil
	})
	// Restart the components, because they reconcile every binding after a start. Events count as
	// writes.
	checkSilentStart(t, env)
	marker := configMap(namespace, "marker")
	env.Create(t, policyFor(t, placementOn(member1), marker), marker)
	awaitInMember(t, env, member1, marker, exists)
}
