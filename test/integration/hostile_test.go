package integration

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member/hostiletest"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/testenv"
)

// If a member sends more data than a bound allows, its Cluster reports the exceeded bound. The
// delivery to other members continues.
func TestHostileMemberIsReportedAndDelaysNoOtherMember(t *testing.T) {
	env := joining(t)
	const name = "hostile"
	server := hostiletest.New(t)
	ref := &clusterv1alpha1.LocalSecretReference{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name},
		Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("token"), clusterv1alpha1.SecretCADataKey: server.CA()},
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, APIEndpoint: server.URL, SecretRef: ref},
	}
	env.Create(t, secret)
	env.Create(t, cluster)
	await(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) error {
		if !conditions.HasStatus(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue) {
			return errors.New("the cluster is not ready")
		}
		return nil
	})
	namespace := env.Namespace(t)
	first := configMap(namespace, "first")
	env.Create(t, policyFor(t, placementOn(member2, name), first), first)
	awaitInMember(t, env, member2, first, exists)
	testenv.Eventually(t, "the object in the hostile member", func(context.Context) error {
		if !server.Has("/api/v1/namespaces/" + namespace + "/configmaps/first") {
			return errors.New("the object does not exist")
		}
		return nil
	})

	server.SetMode(hostiletest.EndlessLargeManagedObjects())
	second := configMap(namespace, "second")
	env.Create(t, policyFor(t, placementOn(member2, name), second), second)
	awaitInMember(t, env, member2, second, exists)
	await(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) error {
		if !conditions.HasStatus(c.Status.Conditions, clusterv1alpha1.ClusterConditionWithinBounds, metav1.ConditionFalse) {
			return errors.New("the condition does not report an exceeded bound")
		}
		return nil
	})
	testenv.Eventually(t, "delivery to the hostile member, object by object", func(context.Context) error {
		if !server.Has("/api/v1/namespaces/" + namespace + "/configmaps/second") {
			return errors.New("the object does not exist")
		}
		return nil
	})
	server.SetMode(hostiletest.Honest())
	unregisterCluster(t, env, name)
}
