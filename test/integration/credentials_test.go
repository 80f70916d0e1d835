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

// tokenLife is how long the tokens of these tests live, the shortest that a member
// issues.
const tokenLife = 10 * time.Minute

// grant makes a service account in a member that may do everything, and returns a
// token of it that ends. Without the account it is refused.
func grant(t *testing.T, inside *testenv.Member, name string) (account *corev1.ServiceAccount, token string, ends time.Time) {
	t.Helper()
	account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
	}
	for _, object := range []client.Object{account, binding} {
		if err := inside.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	seconds := int64(tokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := inside.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return account, request.Status.Token, request.Status.ExpirationTimestamp.Time
}

// storeToken puts a token into the Secret of a cluster.
func storeToken(t *testing.T, env *testenv.Env, cluster, token string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: cluster}}
	testenv.Update(t, env.Karmada, secret, func(s *corev1.Secret) { s.Data[clusterv1alpha1.SecretTokenKey] = []byte(token) })
}

// credentialsAre checks what a Cluster says of its credentials.
func credentialsAre(status metav1.ConditionStatus, reason, message string) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		return condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid, status, reason, message)
	}
}

// expiration is what the metric says of the credentials of a cluster.
func expiration(t *testing.T, cluster string) float64 {
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

func TestTokensOfAMemberAreReplacedWhileWorkFlows(t *testing.T) {
	env := alone(t)
	const name = "rotating"
	inside, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inside.Stop)
	first, token, ends := grant(t, inside, "first")
	inside.Token = token
	if err := env.Register(t.Context(), name, inside); err != nil {
		t.Fatal(err)
	}
	defer leave(t, env, name)
	await(t, env.Karmada, clusterNamed(name), credentialsAre(metav1.ConditionTrue, "Valid", "the token is valid until "+ends.UTC().Format(time.RFC3339)))
	if shown := expiration(t, name); shown != float64(ends.Unix()) {
		t.Errorf("the metric is %v, want %v", shown, ends.Unix())
	}
	namespace := env.Namespace(t)
	send := func(round string) *corev1.ConfigMap {
		template := configMap(namespace, round)
		env.Create(t, policyFor(t, on(name), template), template)
		return template
	}
	await(t, inside.Client, send("before"), exists)

	// The old token is refused the moment the new one is stored.
	second, token, _ := grant(t, inside, "second")
	storeToken(t, env, name, token)
	deleteObject(t, inside.Client, first)
	began := clock.now()
	template := send("after")
	await(t, inside.Client, template, exists)
	if took := clock.since(began); took > promptly {
		t.Errorf("the first object after the token was replaced took %s", took)
	}
	await(t, env.Karmada, workOf(t, name, template), applied)

	// Somebody takes the token away and forgets to store another one.
	deleteObject(t, inside.Client, second)
	refused := send("refused")
	await(t, env.Karmada, clusterNamed(name), credentialsAre(metav1.ConditionFalse, "Refused",
		fmt.Sprintf("the cluster rejects the token in Secret karmada-cluster/%s: put a new one there", name)))

	_, token, ends = grant(t, inside, "third")
	storeToken(t, env, name, token)
	await(t, inside.Client, refused, exists)
	await(t, env.Karmada, clusterNamed(name), credentialsAre(metav1.ConditionTrue, "Valid", "the token is valid until "+ends.UTC().Format(time.RFC3339)))
}

// What is being delivered all the time notices nothing of a token that is replaced.
func TestNoWorkFailsWhenATokenIsReplaced(t *testing.T) {
	env := alone(t)
	const name, rounds = "replacing", 10
	inside, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inside.Stop)
	old, token, _ := grant(t, inside, "round-0")
	inside.Token = token
	if err := env.Register(t.Context(), name, inside); err != nil {
		t.Fatal(err)
	}
	defer leave(t, env, name)
	namespace := env.Namespace(t)
	warm := configMap(namespace, "warm")
	env.Create(t, policyFor(t, on(name), warm), warm)
	await(t, inside.Client, warm, exists)
	for round := range rounds {
		next, token, _ := grant(t, inside, fmt.Sprintf("round-%d", round+1))
		storeToken(t, env, name, token)
		deleteObject(t, inside.Client, old)
		old = next
		template := configMap(namespace, fmt.Sprintf("sent-%d", round))
		env.Create(t, policyFor(t, on(name), template), template)
		await(t, env.Karmada, workOf(t, name, template), applied)
	}
	events := &corev1.EventList{}
	if err := env.Karmada.List(t.Context(), events, client.InNamespace("karmada-es-"+name)); err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Reason == workv1alpha1.EventReasonSyncFailed && strings.Contains(event.Message, "Unauthorized") {
			t.Errorf("a Work was refused: %s", event.Message)
		}
	}
}
