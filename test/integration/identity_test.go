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

// pointClusterAt gives a Cluster the address and the credentials of another member, as when a
// virtual IP or a DNS name leads to another cluster.
func pointClusterAt(t *testing.T, env *testenv.Env, name string, to *testenv.Member) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}}
	testenv.Update(t, env.Karmada, secret, func(s *corev1.Secret) {
		s.Data[clusterv1alpha1.SecretTokenKey], s.Data[clusterv1alpha1.SecretCADataKey] = []byte(to.Token), to.Config.CAData
	})
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = to.Config.Host })
}

func memberID(t *testing.T, memberCluster *testenv.Member) string {
	t.Helper()
	return string(await(t, memberCluster.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}, exists).UID)
}

func isReady(c *clusterv1alpha1.Cluster) error {
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
		return fmt.Errorf("the conditions are %+v", c.Status.Conditions)
	}
	return nil
}

// Karmada delivers nothing to another cluster at the address of a member, and deletes nothing
// there, until a user accepts that cluster.
func TestClusterIdentityMismatchStopsDelivery(t *testing.T) {
	env := joining(t)
	const name = "moved"
	var members [2]*testenv.Member
	for i := range members {
		started, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), "member"), fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(started.Stop)
		members[i] = started
	}
	right, wrong := members[0], members[1]
	if err := env.Register(t.Context(), name, right); err != nil {
		t.Fatal(err)
	}
	defer unregisterCluster(t, env, name)
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.ID = memberID(t, right) })
	await(t, env.Karmada, clusterNamed(name), isReady)
	namespace := env.Namespace(t)
	before, during := configMap(namespace, "before"), configMap(namespace, "during")
	for _, template := range []*corev1.ConfigMap{before, during} {
		env.Create(t, policyFor(t, placementOn(name), template), template)
		await(t, right.Client, configMap(namespace, template.Name), exists)
	}

	// The other cluster has an object with the name of the template and with our labels.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	victim := await(t, right.Client, configMap(namespace, "before"), exists)
	victim = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "before", Labels: victim.Labels, Annotations: victim.Annotations}, Data: map[string]string{"mine": "yes"}}
	for _, object := range []client.Object{ns, victim} {
		if err := wrong.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	pointClusterAt(t, env, name, wrong)
	seen := memberID(t, wrong)
	cluster := await(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch, metav1.ConditionTrue, "IdentityMismatch",
			fmt.Sprintf("cluster %s is registered with ID %s, and %s leads to the cluster with ID %s;", name, memberID(t, right), wrong.Config.Host, seen))
	})
	message := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch).Message
	if !strings.Contains(message, "kubectl patch cluster moved --type=merge") {
		t.Errorf("the message has no command to accept the cluster: %s", message)
	}
	await(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionFalse, "IdentityMismatch", "cluster moved is registered with ID")
	})
	testenv.Update(t, env.Karmada, configMap(namespace, "during"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"round": "2"} })
	work := await(t, env.Karmada, workOf(t, name, during), func(w *workv1alpha1.Work) error { return checkEqual("generation", int64(2), w.Generation) })
	deleteObject(t, env.Karmada, configMap(namespace, "before"))
	deletedWork := await(t, env.Karmada, workOf(t, name, before), func(w *workv1alpha1.Work) error {
		if w.DeletionTimestamp == nil {
			return fmt.Errorf("the Work is not being deleted")
		}
		return nil
	})
	if err := testenv.Held(t.Context(), maxWriteDelay, func(ctx context.Context) error {
		if err := checkAbsent(ctx, wrong.Client, configMap(namespace, "during")); err != nil {
			return err
		}
		for _, kept := range []client.Object{work, deletedWork} {
			if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
				return fmt.Errorf("the Work was released: %w", err)
			}
		}
		kept := configMap(namespace, "before")
		if err := wrong.Client.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
			return err
		}
		return checkEqual("data of the other cluster", "yes", kept.Data["mine"])
	}); err != nil {
		t.Fatal(err)
	}

	// When the address leads to the right cluster again, the delivery goes on.
	pointClusterAt(t, env, name, right)
	await(t, right.Client, configMap(namespace, "during"), func(c *corev1.ConfigMap) error { return checkEqual("round", "2", c.Data["round"]) })
	awaitGone(t, right.Client, configMap(namespace, "before"))
	await(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch, metav1.ConditionFalse, "IdentityProven", "the cluster is the one")
	})

	// A user accepts the other cluster: it gets all objects.
	pointClusterAt(t, env, name, wrong)
	await(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionIdentityMismatch, metav1.ConditionTrue, "IdentityMismatch", "")
	})
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.ID = seen })
	await(t, wrong.Client, configMap(namespace, "during"), exists)
}
