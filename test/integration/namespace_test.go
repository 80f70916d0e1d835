package integration

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestNamespaceIsPropagatedToEveryMemberAndWithdrawnOnDeletion(t *testing.T) {
	env := shared(t)
	name := env.Namespace(t)
	for _, cluster := range []string{member1, member2, member3} {
		awaitInMember(t, env, cluster, namespaceNamed(name), func(n *corev1.Namespace) error {
			return checkEqual("managed", "true", n.Labels[workv1alpha1.ManagedByKarmadaLabel])
		})
	}
	deleteObject(t, env.Karmada, namespaceNamed(name))
	awaitGone(t, env.Karmada, namespaceNamed(name))
	for _, cluster := range []string{member1, member2, member3} {
		awaitGone(t, env.Karmada, workOf(t, cluster, namespaceNamed(name)))
		// The namespace stays in deletion, because members have no namespace controller.
		testenv.Eventually(t, "deletion in "+cluster, func(ctx context.Context) error {
			stored := namespaceNamed(name)
			err := checkAbsent(ctx, memberClient(env, cluster), stored)
			if err == nil {
				return nil
			}
			if err := memberClient(env, cluster).Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
				return err
			}
			if stored.DeletionTimestamp == nil {
				return errors.New("the namespace is not deleted")
			}
			return nil
		})
	}
}

func TestNamespaceWithTheSkipLabelIsNotPropagated(t *testing.T) {
	env := shared(t)
	skipped := namespaceNamed("skipped-" + env.Namespace(t))
	skipped.Labels = map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "True"}
	cleanUp(t, env, skipped)
	env.Create(t, skipped)
	// A namespace that is created later is propagated, so the skipped namespace was reconciled.
	awaitNamespace(t, env, member1, env.Namespace(t))
	testenv.Holds(t, "no namespace in the member", quietPeriod, func(ctx context.Context) error {
		return checkAbsent(ctx, memberClient(env, member1), skipped)
	})

	testenv.Update(t, env.Karmada, skipped, func(n *corev1.Namespace) { delete(n.Labels, policyv1alpha1.NamespaceSkipAutoPropagationLabel) })
	awaitNamespace(t, env, member1, skipped.Name)
}

func TestExistingNamespaceOfAMemberIsNotManaged(t *testing.T) {
	env := shared(t)
	existing := namespaceNamed("own-" + env.Namespace(t))
	if err := memberClient(env, member1).Create(t.Context(), existing.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, env, existing)
	env.Create(t, existing)
	await(t, env.Karmada, workOf(t, member1, existing), func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", "")
	})
	awaitInMember(t, env, member1, existing, func(n *corev1.Namespace) error {
		return checkEqual("managed", "", n.Labels[workv1alpha1.ManagedByKarmadaLabel])
	})
	// Objects in the namespace are propagated, although the namespace itself is not managed.
	template := configMap(existing.Name, "inside")
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	awaitInMember(t, env, member1, template, exists)

	deleteObject(t, env.Karmada, existing)
	awaitGone(t, env.Karmada, existing)
	awaitGone(t, memberClient(env, member1), template)
	awaitInMember(t, env, member1, existing, func(n *corev1.Namespace) error {
		if n.DeletionTimestamp != nil {
			return errors.New("the namespace is deleted")
		}
		return nil
	})
}

// Not shared: the override policy matches all objects.
func TestOverrideWithoutSelectorsAppliesToNamespaces(t *testing.T) {
	env := alone(t)
	namespace := namespaceNamed("painted-" + env.Namespace(t))
	namespace.Labels = map[string]string{"paint-" + namespace.Name: "blue"}
	cleanUp(t, env, namespace)
	env.Create(t, namespace)
	color := func(want string) func(*corev1.Namespace) error {
		return func(n *corev1.Namespace) error { return checkEqual("color", want, n.Labels["paint-"+n.Name]) }
	}
	awaitInMember(t, env, member1, namespace, color("blue"))
	everything := &policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace.Name},
		Spec: newOverrideSpec(nil, policyv1alpha1.RuleWithCluster{Overriders: policyv1alpha1.Overriders{
			LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{
				Operator: policyv1alpha1.OverriderOpReplace, Value: map[string]string{"paint-" + namespace.Name: "red"},
			}},
		}}),
	}
	env.Create(t, everything)
	awaitInMember(t, env, member1, namespace, color("red"))
	deleteObject(t, env.Karmada, everything)
	awaitInMember(t, env, member1, namespace, color("blue"))
}

func TestNamespaceReleasedByAPolicyIsNotDeleted(t *testing.T) {
	env := shared(t)
	namespace := namespaceNamed("twice-" + env.Namespace(t))
	cleanUp(t, env, namespace)
	env.Create(t, namespace)
	created := awaitInMember(t, env, member1, namespace, exists)
	memberConfigMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "inside"}}
	if err := memberClient(env, member1).Create(t.Context(), memberConfigMap); err != nil {
		t.Fatal(err)
	}
	memberWork := await(t, env.Karmada, workOf(t, member1, namespace), isApplied)

	policy := clusterPolicyFor(t, env, placementOn(member1), namespace)
	policy.Name = namespace.Name
	env.Create(t, policy)
	rb := await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		if !work.HasBinding(w) {
			return errors.New("the binding does not own the Work")
		}
		return isApplied(w)
	})
	testenv.Holds(t, "the Work of the binding", quietPeriod, func(ctx context.Context) error {
		stored := workOf(t, member1, namespace)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return err
		}
		return checkEqual("generation", rb.Generation, stored.Generation)
	})

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.ClusterPropagationPolicy) { p.Spec.Placement = placementOn(member2) })
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		if work.HasBinding(w) {
			return errors.New("the binding still owns the Work")
		}
		_, resolution := w.Annotations[workv1alpha2.ResourceConflictResolutionAnnotation]
		return errors.Join(isApplied(w), checkEqual("uid", memberWork.UID, w.UID), checkEqual("has a conflict resolution", false, resolution))
	})
	awaitInMember(t, env, member1, namespace, func(n *corev1.Namespace) error {
		if n.DeletionTimestamp != nil {
			return errors.New("the namespace is deleted")
		}
		_, rb := n.Annotations[workv1alpha2.ClusterResourceBindingAnnotation]
		return errors.Join(checkEqual("uid", created.UID, n.UID), checkEqual("has the annotation of the binding", false, rb))
	})
	awaitInMember(t, env, member1, memberConfigMap, exists)
}
