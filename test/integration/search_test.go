package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/testenv"
	"karmada.io/karmada/internal/testenv/testetcd"
)

const searchPath = "/apis/search.karmada.io/v1alpha1/"

// TestSearchServesTheObjectsOfMembersToTheirReaders runs karmada-search for a control plane. Only
// member3, under another name, knows the user ann.
func TestSearchServesTheObjectsOfMembersToTheirReaders(t *testing.T) {
	env := joiningMember3(t)
	const searched = "searched"
	registerProxiedMember(t, env, searched)
	namespace := env.Namespace(t)
	await(t, memberClient(env, member3), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, exists)
	createInMember3(t, env, configMap(namespace, "settings"))
	grantSearch(t, env, namespace, "ann")
	server := startSearchProgram(t, env)
	registry := createRegistry(t, withHost(env.Config, server), searched)

	ann := withHost(newCertificateConfig(t, env, "ann"), server)
	annClient := newClientset(t, ann)
	proxied := rest.CopyConfig(ann)
	proxied.Host += searchPath + "proxying/karmada/proxy"
	proxiedClient := newClientset(t, proxied)
	testenv.Eventually(t, "the cache has the object", func(ctx context.Context) error {
		return hasCached(ctx, annClient, namespace, searched)
	})
	testenv.Eventually(t, "a query finds the object", func(ctx context.Context) error { return findsObject(ctx, annClient, namespace, searched) })
	list, err := proxiedClient.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=settings"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Annotations["resource.karmada.io/cached-from-cluster"] != searched {
		t.Errorf("the proxy lists %+v, %v; want settings of %s", list, err, searched)
	}
	nested := "proxying/karmada/proxy" + searchPath + "proxying/karmada/proxy/api/v1/namespaces"
	if _, err := read(t.Context(), annClient, nested, nil); !apierrors.IsBadRequest(err) {
		t.Errorf("a path of the proxy within a path of the proxy: %v", err)
	}
	testProxyWrites(t, env, proxiedClient, namespace)
	testStranger(t, env, server, namespace)
	testenv.Eventually(t, "the status reports the objects", func(ctx context.Context) error {
		return reportsObjects(ctx, newClientset(t, withHost(env.Config, server)), registry)
	})
}

// startSearchProgram runs karmada-search with an etcd of its own, and returns its URL.
func startSearchProgram(t *testing.T, env *testenv.Env) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "karmada.config")
	config := clientcmdapi.NewConfig()
	tls := env.Config.TLSClientConfig
	config.Clusters["karmada"] = &clientcmdapi.Cluster{Server: env.Config.Host, CertificateAuthorityData: tls.CAData, CertificateAuthority: tls.CAFile}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: tls.CertData, ClientKeyData: tls.KeyData, ClientCertificate: tls.CertFile, ClientKey: tls.KeyFile, Token: env.Config.BearerToken,
	}
	config.Contexts["karmada"] = &clientcmdapi.Context{Cluster: "karmada", AuthInfo: "admin"}
	config.CurrentContext = "karmada"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(freePort(t))
	startProgram(t, programs.Search, append(testetcd.Start(t).APIServerFlags(), "--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+standalone.Loopback, "--secure-port="+port, "--cert-dir="+t.TempDir())...)
	return "https://" + net.JoinHostPort(standalone.Loopback, port)
}

// withHost returns the credentials of a client configuration for another server.
func withHost(config *rest.Config, server string) *rest.Config {
	other := rest.CopyConfig(config)
	other.Host, other.CAData, other.CAFile, other.Insecure = server, nil, "", true
	return other
}

// createRegistry waits for karmada-search, and creates a registry of the ConfigMaps of a cluster.
func createRegistry(t *testing.T, config *rest.Config, cluster string) string {
	t.Helper()
	search, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	registry.Spec.TargetCluster.ClusterNames = []string{cluster}
	registry.Spec.ResourceSelectors = []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
	testenv.Eventually(t, "karmada-search stores a registry", func(ctx context.Context) error {
		if err := search.Create(ctx, registry.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
	return registry.Name
}

// grantSearch allows a user to search and to use the proxy, and to use ConfigMaps in member3.
func grantSearch(t *testing.T, env *testenv.Env, namespace, name string) {
	t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-search"}, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"*"}, APIGroups: []string{searchv1alpha1.GroupName}, Resources: []string{"search", "search/api", "search/apis", "proxying/proxy"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	env.Create(t, role, binding)
	cleanUp(t, env, role)
	cleanUp(t, env, binding)
	createInMember3(t, env,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"configmaps"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "settings"},
		})
}

// read sends a GET request to karmada-search.
func read(ctx context.Context, api *kubernetes.Clientset, path string, parameters map[string]string) ([]byte, error) {
	request := api.CoreV1().RESTClient().Get().AbsPath(searchPath + path)
	for key, value := range parameters {
		request = request.Param(key, value)
	}
	raw, err := request.Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w: %s", path, err, raw)
	}
	return raw, nil
}

func hasCached(ctx context.Context, api *kubernetes.Clientset, namespace, cluster string) error {
	raw, err := read(ctx, api, "search/cache/api/v1/namespaces/"+namespace+"/configmaps/settings", nil)
	if err != nil {
		return err
	}
	list := &corev1.ConfigMapList{}
	if err := json.Unmarshal(raw, list); err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].Annotations["resource.karmada.io/cached-from-cluster"] != cluster || list.Kind != "ConfigMapList" {
		return fmt.Errorf("the cache answers %s", raw)
	}
	return nil
}

func findsObject(ctx context.Context, api *kubernetes.Clientset, namespace, cluster string) error {
	raw, err := read(ctx, api, "search/query", map[string]string{"q": "kind:ConfigMap settings namespace:" + namespace})
	if err != nil {
		return err
	}
	found := &searchv1alpha1.SearchResultList{}
	if err := json.Unmarshal(raw, found); err != nil {
		return err
	}
	if len(found.Items) != 1 || found.Items[0].Cluster != cluster || found.Items[0].Name != "settings" {
		return fmt.Errorf("the query finds %s", raw)
	}
	return nil
}

// testProxyWrites changes and deletes the object of the member through the proxy.
func testProxyWrites(t *testing.T, env *testenv.Env, proxied *kubernetes.Clientset, namespace string) {
	t.Helper()
	settings, err := proxied.CoreV1().ConfigMaps(namespace).Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading through the proxy: %v", err)
	}
	settings.Data = map[string]string{"changed": "yes"}
	if _, err := proxied.CoreV1().ConfigMaps(namespace).Update(t.Context(), settings, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("writing through the proxy: %v", err)
	}
	inMember := configMap(namespace, "settings")
	if err := memberClient(env, member3).Get(t.Context(), client.ObjectKeyFromObject(inMember), inMember); err != nil {
		t.Fatal(err)
	}
	_, isAnnotated := inMember.Annotations["resource.karmada.io/cached-from-cluster"]
	if diff := cmp.Diff(settings.Data, inMember.Data); diff != "" || isAnnotated {
		t.Errorf("annotations %v; data (-want +got):\n%s", inMember.Annotations, diff)
	}
}

// testStranger reads as a user without permissions.
func testStranger(t *testing.T, env *testenv.Env, server, namespace string) {
	t.Helper()
	stranger := newClientset(t, withHost(newCertificateConfig(t, env, "sam"), server))
	if _, err := read(t.Context(), stranger, "search/cache/api/v1/namespaces/"+namespace+"/configmaps", nil); !apierrors.IsForbidden(err) {
		t.Errorf("a user without a role gets %v, want Forbidden", err)
	}
	// This user may search, but no member knows the user.
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "sam"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-search-sam"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace + "-search"},
	}
	env.Create(t, binding)
	cleanUp(t, env, binding)
	testenv.Eventually(t, "a user without rights in the member may search and finds nothing", func(ctx context.Context) error {
		raw, err := read(ctx, stranger, "search/cache/api/v1/namespaces/"+namespace+"/configmaps", nil)
		if err != nil {
			return err
		}
		if strings.Contains(string(raw), "settings") {
			return fmt.Errorf("the cache answers %s", raw)
		}
		return nil
	})
}

func reportsObjects(ctx context.Context, api *kubernetes.Clientset, name string) error {
	raw, err := read(ctx, api, "resourceregistries/"+name, nil)
	if err != nil {
		return err
	}
	registry := &searchv1alpha1.ResourceRegistry{}
	if err := json.Unmarshal(raw, registry); err != nil {
		return err
	}
	if len(registry.Status.Conditions) == 0 {
		return errors.New("the registry has no status")
	}
	return nil
}
