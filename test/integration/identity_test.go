package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/testenv"
)

// moveTo makes the address and the credentials of a Cluster those of a member, as a
// virtual IP or a DNS name does that leads to another cluster.
func moveTo(t *testing.T, env *testenv.Env, name string, to *testenv.Member) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}}
	testenv.Update(t, env.Karmada, secret, func(s *corev1.Secret) {
		s.Data[clusterv1alpha1.SecretTokenKey], s.Data[clusterv1alpha1.SecretCADataKey] = []byte(to.Token), to.Config.CAData
	})
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = to.Config.Host })
}

func identityOf(t *testing.T, of *testenv.Member) string {
	t.Helper()
	return string(await(t, of.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}, exists).UID)
}

func isReady(c *clusterv1alpha1.Cluster) error {
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
		return fmt.Errorf("conditions %+v", c.Status.Conditions)
	}
	return nil
}

// An address that leads to another cluster gets nothing and loses nothing, until a
// person accepts that cluster.
func TestAnAddressThatLeadsToAnotherClusterGetsNothing(t *testing.T) {
	env := alone(t)
	const name = "moved"
	var sides [2]*testenv.Member
	for i := range sides {
		started, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), "member"), fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(started.Stop)
		sides[i] = started
	}
	right, wrong := sides[0], sides[1]
	if err := env.Register(t.Context(), name, right); err != nil {
		t.Fatal(err)
	}
	defer leave(t, env, name)
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.ID = identityOf(t, right) })
	await(t, env.Karmada, clusterNamed(name), isReady)
	namespace := env.Namespace(t)
	before, during := configMap(namespace, "before"), configMap(namespace, "during")
	for _, template := range []*corev1.ConfigMap{before, during} {
		env.Create(t, policyFor(t, on(name), template), template)
		await(t, right.Client, configMap(namespace, template.Name), exists)
	}

	// The other cluster holds an object of that name and with our marks.
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	victim := await(t, right.Client, configMap(namespace, "before"), exists)
	victim = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "before", Labels: victim.Labels, Annotations: victim.Annotations}, Data: map[string]string{"mine": "yes"}}
	for _, object := range []client.Object{space, victim} {
		if err := wrong.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	moveTo(t, env, name, wrong)
	seen := identityOf(t, wrong)
	cluster := await(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) error {
		return condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch, metav1.ConditionTrue, "IdentityMismatch",
			fmt.Sprintf("cluster %s is registered with ID %s, and %s leads to the cluster with ID %s;", name, identityOf(t, right), wrong.Config.Host, seen))
	})
	message := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch).Message
	if !strings.Contains(message, "kubectl patch cluster moved --type=merge") {
		t.Errorf("the condition names no remedy: %s", message)
	}
	await(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) error {
		return condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionFalse, "IdentityMismatch", "cluster moved is registered with ID")
	})
	testenv.Update(t, env.Karmada, configMap(namespace, "during"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"round": "2"} })
	work := await(t, env.Karmada, workOf(t, name, during), func(w *workv1alpha1.Work) error { return same("generation", int64(2), w.Generation) })
	deleteObject(t, env.Karmada, configMap(namespace, "before"))
	gone := await(t, env.Karmada, workOf(t, name, before), func(w *workv1alpha1.Work) error {
		if w.DeletionTimestamp == nil {
			return fmt.Errorf("it is not being deleted")
		}
		return nil
	})
	if err := testenv.Held(t.Context(), longestDelay, func(ctx context.Context) error {
		if err := absent(ctx, wrong.Client, configMap(namespace, "during")); err != nil {
			return err
		}
		for _, kept := range []client.Object{work, gone} {
			if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
				return fmt.Errorf("the Work was released: %w", err)
			}
		}
		kept := configMap(namespace, "before")
		if err := wrong.Client.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
			return err
		}
		return same("data of the other cluster", "yes", kept.Data["mine"])
	}); err != nil {
		t.Fatal(err)
	}

	// Back at the right cluster all goes on.
	moveTo(t, env, name, right)
	await(t, right.Client, configMap(namespace, "during"), func(c *corev1.ConfigMap) error { return same("round", "2", c.Data["round"]) })
	awaitGone(t, right.Client, configMap(namespace, "before"))
	await(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) error {
		return condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch, metav1.ConditionFalse, "IdentityProven", "the cluster is the one")
	})

	// A person accepts the other cluster: it gets all.
	moveTo(t, env, name, wrong)
	await(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) error {
		return condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch, metav1.ConditionTrue, "IdentityMismatch", "")
	})
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.ID = seen })
	await(t, wrong.Client, configMap(namespace, "during"), exists)
}
