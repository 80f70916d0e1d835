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

func TestNamespaceIsSentToEveryMemberAndWithdrawnWithItsEnd(t *testing.T) {
	env := shared(t)
	name := env.Namespace(t)
	for _, cluster := range []string{member1, member2, member3} {
		inMember(t, env, cluster, namespaceNamed(name), func(n *corev1.Namespace) error {
			return same("managed", "true", n.Labels[workv1alpha1.ManagedByKarmadaLabel])
		})
	}
	deleteObject(t, env.Karmada, namespaceNamed(name))
	awaitGone(t, env.Karmada, namespaceNamed(name))
	for _, cluster := range []string{member1, member2, member3} {
		awaitGone(t, env.Karmada, workOf(t, cluster, namespaceNamed(name)))
		// Members of this environment have no controller that ends namespaces.
		testenv.Eventually(t, "deletion in "+cluster, func(ctx context.Context) error {
			stored := namespaceNamed(name)
			err := absent(ctx, member(env, cluster), stored)
			if err == nil {
				return nil
			}
			if err := member(env, cluster).Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
				return err
			}
			if stored.DeletionTimestamp == nil {
				return errors.New("it is not deleted")
			}
			return nil
		})
	}
}

func TestNamespaceThatIsToBeSkippedStaysInTheControlPlane(t *testing.T) {
	env := shared(t)
	skipped := namespaceNamed("skipped-" + env.Namespace(t))
	skipped.Labels = map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "True"}
	cleanUp(t, env, skipped)
	env.Create(t, skipped)
	// A later one gets through, so the former was looked at.
	namespaceIn(t, env, member1, env.Namespace(t))
	testenv.Holds(t, "the namespace in a member", quiet, func(ctx context.Context) error {
		return absent(ctx, member(env, member1), skipped)
	})

	testenv.Update(t, env.Karmada, skipped, func(n *corev1.Namespace) { delete(n.Labels, policyv1alpha1.NamespaceSkipAutoPropagationLabel) })
	namespaceIn(t, env, member1, skipped.Name)
}

func TestNamespaceThatAMemberHadBeforeIsLeftAlone(t *testing.T) {
	env := shared(t)
	own := namespaceNamed("own-" + env.Namespace(t))
	if err := member(env, member1).Create(t.Context(), own.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, env, own)
	env.Create(t, own)
	await(t, env.Karmada, workOf(t, member1, own), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", "")
	})
	inMember(t, env, member1, own, func(n *corev1.Namespace) error {
		return same("managed", "", n.Labels[workv1alpha1.ManagedByKarmadaLabel])
	})
	// What is inside is propagated nevertheless.
	template := configMap(own.Name, "inside")
	env.Create(t, policyFor(t, on(member1), template), template)
	inMember(t, env, member1, template, exists)

	deleteObject(t, env.Karmada, own)
	awaitGone(t, env.Karmada, own)
	awaitGone(t, member(env, member1), template)
	inMember(t, env, member1, own, func(n *corev1.Namespace) error {
		if n.DeletionTimestamp != nil {
			return errors.New("it is deleted")
		}
		return nil
	})
}

// Not in parallel: the policy concerns everything there is.
func TestOverrideForEverythingReachesNamespacesToo(t *testing.T) {
	env := alone(t)
	namespace := namespaceNamed("painted-" + env.Namespace(t))
	namespace.Labels = map[string]string{"paint-" + namespace.Name: "blue"}
	cleanUp(t, env, namespace)
	env.Create(t, namespace)
	color := func(want string) func(*corev1.Namespace) error {
		return func(n *corev1.Namespace) error { return same("color", want, n.Labels["paint-"+n.Name]) }
	}
	inMember(t, env, member1, namespace, color("blue"))
	everything := &policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace.Name},
		Spec: overrideSpec(nil, policyv1alpha1.RuleWithCluster{Overriders: policyv1alpha1.Overriders{
			LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{
				Operator: policyv1alpha1.OverriderOpReplace, Value: map[string]string{"paint-" + namespace.Name: "red"},
			}},
		}}),
	}
	env.Create(t, everything)
	inMember(t, env, member1, namespace, color("red"))
	deleteObject(t, env.Karmada, everything)
	inMember(t, env, member1, namespace, color("blue"))
}

func TestNamespaceThatAPolicySelectsTooIsGivenBackAndNotDeleted(t *testing.T) {
	env := shared(t)
	namespace := namespaceNamed("twice-" + env.Namespace(t))
	cleanUp(t, env, namespace)
	env.Create(t, namespace)
	made := inMember(t, env, member1, namespace, exists)
	inside := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "inside"}}
	if err := member(env, member1).Create(t.Context(), inside); err != nil {
		t.Fatal(err)
	}
	of := await(t, env.Karmada, workOf(t, member1, namespace), applied)

	policy := clusterPolicyFor(t, env, on(member1), namespace)
	policy.Name = namespace.Name
	env.Create(t, policy)
	bound := await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		if !work.HasBinding(w) {
			return errors.New("the binding does not keep the Work")
		}
		return applied(w)
	})
	testenv.Holds(t, "the Work of the binding", quiet, func(ctx context.Context) error {
		stored := workOf(t, member1, namespace)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return err
		}
		return same("generation", bound.Generation, stored.Generation)
	})

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.ClusterPropagationPolicy) { p.Spec.Placement = on(member2) })
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		if work.HasBinding(w) {
			return errors.New("the binding still keeps the Work")
		}
		_, resolution := w.Annotations[workv1alpha2.ResourceConflictResolutionAnnotation]
		return errors.Join(applied(w), same("uid", of.UID, w.UID), same("word on conflicts", false, resolution))
	})
	inMember(t, env, member1, namespace, func(n *corev1.Namespace) error {
		if n.DeletionTimestamp != nil {
			return errors.New("it is deleted")
		}
		_, bound := n.Annotations[workv1alpha2.ClusterResourceBindingAnnotation]
		return errors.Join(same("uid", made.UID, n.UID), same("mark of the binding", false, bound))
	})
	inMember(t, env, member1, inside, exists)
}
