package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/testenv"
)

// TestWritesToAllClusters writes through the proxy to all clusters, while a member is frozen and while
// a member claims to have every object.
func TestWritesToAllClusters(t *testing.T) {
	env := alone(t)
	for _, member := range []string{member1, member2, member3} {
		addImpersonator(t, env, member, member)
		t.Cleanup(func() { removeImpersonation(t, env, member) })
	}
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	env.Create(t, settings, policyFor(t, placementOn(member1), settings))
	await(t, memberClient(env, member1), settings, exists)
	await(t, memberClient(env, member3), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, exists)
	createInMember3(t, env, configMap(namespace, "own"))
	everywhere := newClientset(t, proxyConfig(env.Config, "*")).CoreV1().ConfigMaps(namespace)

	testenv.Eventually(t, "write a propagated object", func(ctx context.Context) error { return patch(ctx, everywhere, "settings") })
	err := everywhere.Delete(t.Context(), "own", metav1.DeleteOptions{})
	if !apierrors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), "clusters/member3/proxy") {
		t.Errorf("deletion of an object that Karmada did not deliver: %v", err)
	}
	if err := everywhere.Delete(t.Context(), "none", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("deletion of an object that no member has: %v", err)
	}
	t.Run("a hostile member", func(t *testing.T) { checkHostileMember(t, env, everywhere) })
	t.Run("a frozen member", func(t *testing.T) { checkFrozenMember(t, env, everywhere) })
	await(t, memberClient(env, member3), configMap(namespace, "own"), exists)
}

// removeImpersonation removes the reference to the impersonator Secret of a cluster, and the objects
// that the control plane delivered because of it. Otherwise a test that registers the same member
// under another name could not deliver these objects.
func removeImpersonation(t *testing.T, env *testenv.Env, cluster string) {
	t.Helper()
	testenv.Update(t, env.Karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, func(c *clusterv1alpha1.Cluster) {
		c.Spec.ImpersonatorSecretRef = nil
	})
	for kind, object := range map[string]client.Object{
		"ClusterRole":        &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: impersonatorAccount}},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: impersonatorAccount}},
	} {
		delivery := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: work.ExecutionNamespace(cluster), Name: work.Name(kind, "", impersonatorAccount),
		}}
		ctx := context.WithoutCancel(t.Context())
		if err := client.IgnoreNotFound(env.Karmada.Delete(ctx, delivery)); err != nil {
			t.Errorf("deleting Work %s/%s: %v", delivery.Namespace, delivery.Name, err)
		}
		awaitGone(t, env.Karmada, delivery)
		if err := client.IgnoreNotFound(memberClient(env, cluster).Delete(ctx, object)); err != nil {
			t.Errorf("deleting %s %s in %s: %v", kind, object.GetName(), cluster, err)
		}
	}
}

func patch(ctx context.Context, configMaps corev1client.ConfigMapInterface, name string) error {
	_, err := configMaps.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"password":"secret"}}`), metav1.PatchOptions{})
	return err
}

// checkHostileMember writes while a member responds to every request with the object of its path.
func checkHostileMember(t *testing.T, env *testenv.Env, everywhere corev1client.ConfigMapInterface) {
	var mu sync.Mutex
	var received []string
	hostile := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if body, _ := io.ReadAll(req.Body); req.Method != http.MethodGet || len(body) > 0 {
			mu.Lock()
			defer mu.Unlock()
			received = append(received, fmt.Sprintf("%s %s %s", req.Method, req.URL, body))
		}
		parts := strings.Split(req.URL.Path, "/")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q,"uid":"0001"}}`,
			parts[len(parts)-3], parts[len(parts)-1])
	}))
	t.Cleanup(hostile.Close)
	registerUnmanagedMember(t, env, "hostile", hostile.URL)
	err := patch(t.Context(), everywhere, "none")
	if !apierrors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), `only cluster "hostile" returns it`) {
		t.Errorf("a patch of an object that only the hostile member claims: %v", err)
	}
	if err := patch(t.Context(), everywhere, "settings"); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "hostile,member1") {
		t.Errorf("a patch of an object that another member has: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(received) > 0 {
		t.Errorf("the member received %q", received)
	}
}

// checkFrozenMember reads and writes while a member accepts connections but does not respond.
func checkFrozenMember(t *testing.T, env *testenv.Env, everywhere corev1client.ConfigMapInterface) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(standalone.Loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	registerUnmanagedMember(t, env, "frozen", "https://"+listener.Addr().String())
	if err = patch(t.Context(), everywhere, "settings"); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "[frozen]") {
		t.Errorf("a patch: %v", err)
	}
	_, err = everywhere.Get(t.Context(), "none", metav1.GetOptions{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "[frozen]") {
		t.Errorf("a read of an object that no member with a response has: %v", err)
	}
	if _, err := everywhere.Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
		t.Errorf("a read of an object in another member: %v", err)
	}
}
