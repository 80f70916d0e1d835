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
	memberGrant "karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/testenv"
)

// limitedTo makes the accounts of a cluster that was joined with --member-role, and
// returns the token of the one that acts.
func limitedTo(t *testing.T, inside *testenv.Member, cluster string, role *rbacv1.ClusterRole) string {
	t.Helper()
	base := memberGrant.NewClusterRole(cluster)
	base.Rules = memberGrant.BaseRules()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: memberGrant.AccountName(cluster)}}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-cluster"}}, account, role, base,
		memberGrant.NewClusterRoleBinding(cluster, "karmada-cluster"), memberGrant.NewMemberRoleBinding(cluster, "karmada-cluster", role.Name),
	} {
		if err := inside.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := inside.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// A member that was joined with a role gets what the role allows, and says of the rest
// which rule is missing.
func TestAMemberRoleLimitsWhatIsDelivered(t *testing.T) {
	env := alone(t)
	const name = "limited"
	inside, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inside.Stop)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "deployers"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
	}}
	full := inside.Token
	inside.Token = limitedTo(t, inside, name, role)
	if err := env.Register(t.Context(), name, inside); err != nil {
		t.Fatal(err)
	}
	inside.Token = full
	defer leave(t, env, name)
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) {
		c.Annotations = map[string]string{clusterv1alpha1.MemberRoleAnnotation: role.Name}
	})
	await(t, env.Karmada, clusterNamed(name), isReady)

	namespace := env.Namespace(t)
	if err := inside.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	allowed, refused := deployment(namespace, "web", 2), configMap(namespace, "settings")
	env.Create(t, policyFor(t, on(name), allowed), allowed)
	env.Create(t, policyFor(t, on(name), refused), refused)
	await(t, inside.Client, deployment(namespace, "web", 2), replicas(2))
	await(t, env.Karmada, workOf(t, name, allowed), applied)
	work := await(t, env.Karmada, workOf(t, name, refused), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "MemberForbids", "Failed to apply all manifests (0/1): ")
	})
	expectMessage(t, work.Status.Conditions, workv1alpha1.WorkApplied, `{apiGroups: [""], resources: ["configmaps"], verbs: ["get"]} in namespace `+namespace+` to ClusterRole deployers`)
	work = await(t, env.Karmada, work, func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkStatusCollected, metav1.ConditionFalse, "MemberForbids", "The status of objects is not read")
	})
	expectMessage(t, work.Status.Conditions, workv1alpha1.WorkStatusCollected, `{apiGroups: [""], resources: ["configmaps"], verbs: ["list"]} to ClusterRole deployers`)

	// The person who owns the member follows the message.
	testenv.Update(t, inside.Client, role, func(r *rbacv1.ClusterRole) {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}})
	})
	await(t, inside.Client, configMap(namespace, "settings"), exists)
	await(t, env.Karmada, workOf(t, name, refused), applied)
	await(t, env.Karmada, workOf(t, name, refused), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkStatusCollected, metav1.ConditionTrue, "Watched", "")
	})
}

// expectMessage checks that a message holds a text.
func expectMessage(t *testing.T, list []metav1.Condition, kind, text string) {
	t.Helper()
	for _, each := range list {
		if each.Type == kind && !strings.Contains(each.Message, text) {
			t.Errorf("%s says %q, want %q in it", kind, each.Message, text)
		}
	}
}
