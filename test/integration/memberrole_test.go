package integration

import (
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/registration/enroll"
	"karmada.io/karmada/internal/testenv"
)

// createLimitedAccount creates the accounts of a cluster that was joined with --member-role and
// returns the token of the account with which the control plane acts.
func createLimitedAccount(t *testing.T, memberCluster *testenv.Member, cluster string, role *rbacv1.ClusterRole) string {
	t.Helper()
	base := enroll.NewClusterRole(cluster)
	base.Rules = enroll.BaseRules()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: enroll.AccountName(cluster)}}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-cluster"}}, account, role, base,
		enroll.NewClusterRoleBinding(cluster, "karmada-cluster"), enroll.NewMemberRoleBinding(cluster, "karmada-cluster", role.Name),
	} {
		if err := memberCluster.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := memberCluster.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// A member that was joined with a role gets the objects that the role allows. For all other
// objects, conditions name the missing rule.
func TestMemberRoleLimitsDelivery(t *testing.T) {
	env := joining(t)
	const name = "limited"
	memberCluster, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memberCluster.Stop)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "deployers"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
	}}
	full := memberCluster.Token
	memberCluster.Token = createLimitedAccount(t, memberCluster, name, role)
	if err := env.Register(t.Context(), name, memberCluster); err != nil {
		t.Fatal(err)
	}
	memberCluster.Token = full
	defer unregisterCluster(t, env, name)
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) {
		c.Annotations = map[string]string{clusterv1alpha1.MemberRoleAnnotation: role.Name}
	})
	await(t, env.Karmada, clusterNamed(name), isReady)

	namespace := env.Namespace(t)
	if err := memberCluster.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	allowed, refused := deployment(namespace, "web", 2), configMap(namespace, "settings")
	env.Create(t, policyFor(t, placementOn(name), allowed), allowed)
	env.Create(t, policyFor(t, placementOn(name), refused), refused)
	await(t, memberCluster.Client, deployment(namespace, "web", 2), hasReplicas(2))
	await(t, env.Karmada, workOf(t, name, allowed), isApplied)
	work := await(t, env.Karmada, workOf(t, name, refused), func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "MemberForbids", "Failed to apply all manifests (0/1): ")
	})
	checkConditionMessage(t, work.Status.Conditions, workv1alpha1.WorkApplied, `{apiGroups: [""], resources: ["configmaps"], verbs: ["get"]} in namespace `+namespace+` to ClusterRole deployers`)
	work = await(t, env.Karmada, work, func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkStatusCollected, metav1.ConditionFalse, "MemberForbids", "The status of objects is not read")
	})
	checkConditionMessage(t, work.Status.Conditions, workv1alpha1.WorkStatusCollected, `{apiGroups: [""], resources: ["configmaps"], verbs: ["list"]} to ClusterRole deployers`)

	// The administrator of the member adds the rule that the message names.
	testenv.Update(t, memberCluster.Client, role, func(r *rbacv1.ClusterRole) {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}})
	})
	await(t, memberCluster.Client, configMap(namespace, "settings"), exists)
	await(t, env.Karmada, workOf(t, name, refused), isApplied)
	await(t, env.Karmada, workOf(t, name, refused), func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkStatusCollected, metav1.ConditionTrue, "Watched", "")
	})
}

// checkConditionMessage checks that the message of a condition contains a text.
func checkConditionMessage(t *testing.T, list []metav1.Condition, kind, text string) {
	t.Helper()
	for _, each := range list {
		if each.Type == kind && !strings.Contains(each.Message, text) {
			t.Errorf("the message of %s is %q, want %q in it", kind, each.Message, text)
		}
	}
}
