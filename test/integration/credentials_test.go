package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/testenv"
)

// tokenLifetime is the lifetime of tokens in these tests. It is the shortest that a member issues.
const tokenLifetime = 10 * time.Minute

// newAdminAccount creates a service account with the role cluster-admin in a member and returns a
// token of it. The token is invalid when the account is deleted.
func newAdminAccount(t *testing.T, target *testenv.Member, name string) (account *corev1.ServiceAccount, token string, expiresAt time.Time) {
	t.Helper()
	account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
	}
	for _, object := range []client.Object{account, binding} {
		if err := target.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	seconds := int64(tokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := target.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return account, request.Status.Token, request.Status.ExpirationTimestamp.Time
}

// storeClusterToken stores a token in the Secret of a cluster.
func storeClusterToken(t *testing.T, env *testenv.Env, cluster, token string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: cluster}}
	testenv.Update(t, env.Karmada, secret, func(s *corev1.Secret) { s.Data[clusterv1alpha1.SecretTokenKey] = []byte(token) })
}

// hasCredentialsCondition checks the condition CredentialsValid of a Cluster.
func hasCredentialsCondition(status metav1.ConditionStatus, reason, message string) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid, status, reason, message)
	}
}

// expirationMetric returns the value of the expiration metric for a cluster.
func expirationMetric(t *testing.T, cluster string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "cluster_credentials_expiration_timestamp_seconds" {
			continue
		}
		for _, series := range family.GetMetric() {
			if series.GetLabel()[0].GetValue() == cluster {
				return series.GetGauge().GetValue()
			}
		}
	}
	return 0
}

func TestMemberTokenReplacement(t *testing.T) {
	env := joining(t)
	const name = "rotating"
	registered, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registered.Stop)
	firstAccount, token, expiresAt := newAdminAccount(t, registered, "first")
	registered.Token = token
	if err := env.Register(t.Context(), name, registered); err != nil {
		t.Fatal(err)
	}
	defer unregisterCluster(t, env, name)
	await(t, env.Karmada, clusterNamed(name), hasCredentialsCondition(metav1.ConditionTrue, "Valid", "the token is valid until "+expiresAt.UTC().Format(time.RFC3339)))
	if shown := expirationMetric(t, name); shown != float64(expiresAt.Unix()) {
		t.Errorf("the expiration metric is %v, want %v", shown, expiresAt.Unix())
	}
	namespace := env.Namespace(t)
	send := func(round string) *corev1.ConfigMap {
		template := configMap(namespace, round)
		env.Create(t, policyFor(t, placementOn(name), template), template)
		return template
	}
	await(t, registered.Client, send("before"), exists)

	// The old token is invalid immediately after the new one is stored.
	secondAccount, token, _ := newAdminAccount(t, registered, "second")
	storeClusterToken(t, env, name, token)
	deleteObject(t, registered.Client, firstAccount)
	began := clock.now()
	template := send("after")
	await(t, registered.Client, template, exists)
	if took := clock.since(began); took > maxDeliveryTime {
		t.Errorf("the first delivery after the token was replaced took %s", took)
	}
	await(t, env.Karmada, workOf(t, name, template), isApplied)

	// The token becomes invalid before a new one is stored.
	deleteObject(t, registered.Client, secondAccount)
	delayed := send("refused")
	await(t, env.Karmada, clusterNamed(name), hasCredentialsCondition(metav1.ConditionFalse, "Refused",
		fmt.Sprintf("the cluster rejects the token in Secret karmada-cluster/%s: put a new one there", name)))

	_, token, expiresAt = newAdminAccount(t, registered, "third")
	storeClusterToken(t, env, name, token)
	await(t, registered.Client, delayed, exists)
	await(t, env.Karmada, clusterNamed(name), hasCredentialsCondition(metav1.ConditionTrue, "Valid", "the token is valid until "+expiresAt.UTC().Format(time.RFC3339)))
}

// Continuous delivery does not fail when the token is replaced.
func TestNoWorkFailsDuringTokenReplacement(t *testing.T) {
	env := joining(t)
	const name, rounds = "replacing", 10
	registered, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registered.Stop)
	old, token, _ := newAdminAccount(t, registered, "round-0")
	registered.Token = token
	if err := env.Register(t.Context(), name, registered); err != nil {
		t.Fatal(err)
	}
	defer unregisterCluster(t, env, name)
	namespace := env.Namespace(t)
	initial := configMap(namespace, "warm")
	env.Create(t, policyFor(t, placementOn(name), initial), initial)
	await(t, registered.Client, initial, exists)
	for round := range rounds {
		next, token, _ := newAdminAccount(t, registered, fmt.Sprintf("round-%d", round+1))
		storeClusterToken(t, env, name, token)
		deleteObject(t, registered.Client, old)
		old = next
		template := configMap(namespace, fmt.Sprintf("sent-%d", round))
		env.Create(t, policyFor(t, placementOn(name), template), template)
		await(t, env.Karmada, workOf(t, name, template), isApplied)
	}
	events := &corev1.EventList{}
	if err := env.Karmada.List(t.Context(), events, client.InNamespace("karmada-es-"+name)); err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Reason == workv1alpha1.EventReasonSyncFailed && strings.Contains(event.Message, "Unauthorized") {
			t.Errorf("a Work was rejected: %s", event.Message)
		}
	}
}
