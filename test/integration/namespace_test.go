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
	"karmada.io/karmada/internal/testenv"
)

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestNamespaceIsSentToEveryMemberAndWithdrawnWithItsEnd(t *testing.T) {
	t.Parallel()
	name := env.Namespace(t)
	for _, cluster := range []string{member1, member2, member3} {
		inMember(t, cluster, namespaceNamed(name), func(n *corev1.Namespace) error {
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
			err := absent(ctx, member(cluster), stored)
			if err == nil {
				return nil
			}
			if err := member(cluster).Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
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
	t.Parallel()
	skipped := namespaceNamed("skipped-" + env.Namespace(t))
	skipped.Labels = map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "True"}
	cleanUp(t, skipped)
	env.Create(t, skipped)
	// A later one gets through, so the former was looked at.
	namespaceIn(t, member1, env.Namespace(t))
	testenv.Holds(t, "the namespace in a member", quiet, func(ctx context.Context) error {
		return absent(ctx, member(member1), skipped)
	})

	testenv.Update(t, env.Karmada, skipped, func(n *corev1.Namespace) { delete(n.Labels, policyv1alpha1.NamespaceSkipAutoPropagationLabel) })
	namespaceIn(t, member1, skipped.Name)
}

func TestNamespaceThatAMemberHadBeforeIsLeftAlone(t *testing.T) {
	t.Parallel()
	own := namespaceNamed("own-" + env.Namespace(t))
	if err := member(member1).Create(t.Context(), own.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, own)
	env.Create(t, own)
	await(t, env.Karmada, workOf(t, member1, own), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", "")
	})
	inMember(t, member1, own, func(n *corev1.Namespace) error {
		return same("managed", "", n.Labels[workv1alpha1.ManagedByKarmadaLabel])
	})
	// What is inside is propagated nevertheless.
	template := configMap(own.Name, "inside")
	env.Create(t, policyFor(t, on(member1), template), template)
	inMember(t, member1, template, exists)

	deleteObject(t, env.Karmada, own)
	awaitGone(t, env.Karmada, own)
	awaitGone(t, member(member1), template)
	inMember(t, member1, own, func(n *corev1.Namespace) error {
		if n.DeletionTimestamp != nil {
			return errors.New("it is deleted")
		}
		return nil
	})
}
