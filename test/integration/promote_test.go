package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/cli"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/testenv"
)

// writeKubeconfig writes a kubeconfig file and returns its path.
func writeKubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "it",
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		Clusters: map[string]*clientcmdapi.Cluster{"it": {
			Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {
			Token: config.BearerToken, ClientCertificate: config.CertFile, ClientCertificateData: config.CertData,
			ClientKey: config.KeyFile, ClientKeyData: config.KeyData,
		}},
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// runKarmadactl runs a karmadactl command as the administrator of the control plane.
func runKarmadactl(t *testing.T, env *testenv.Env, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	program := &command.Program{Name: cli.Karmadactl, IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}}
	root := cli.New(program)
	root.SetArgs(append(args, "--kubeconfig", writeKubeconfig(t, env.Config)))
	err = root.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// TestPromoteTakesOverMemberObjectsUnchanged registers member3 as another cluster and
// unregisters it.
func TestPromoteTakesOverMemberObjectsUnchanged(t *testing.T) {
	env := alone(t)
	const origin = "origin"
	registerProxiedMember(t, env, origin)
	namespace := env.Namespace(t)
	await(t, memberClient(env, member3), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, exists)
	web := deployment(namespace, "web", 2)
	web.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "shared"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: new(true)}},
	}
	settings, shared := configMap(namespace, "settings"), configMap(namespace, "shared")
	createInMember3(t, env, settings, shared, web)
	env.Create(t, configMap(namespace, "shared"))
	promote := func(args ...string) (string, string, error) {
		return runKarmadactl(t, env, append([]string{"promote", "-n", namespace, "-C", origin}, args...)...)
	}
	// The control plane can impersonate the administrator as soon as the member has the RBAC
	// objects.
	awaitImpersonator(t, env, origin)

	t.Run("errors are reported before anything is created", func(t *testing.T) {
		existingPolicy := policyFor(t, placementOn(origin), configMap(namespace, "other"))
		env.Create(t, existingPolicy)
		for want, args := range map[string][]string{
			`deployments.apps "none" not found`: {"deployment", "none"},
			`PropagationPolicy ` + namespace + `/other already exists in the control plane: choose another name with --policy-name`: {"deploy", "web", "--policy-name", "other"},
			`the control plane has no namespace "kube-public-of-member"`:                                                            {"configmap", "a", "-n", "kube-public-of-member"},
			`are never propagated`: {"lease", "a"},
		} {
			createPromotionSources(t, env, args, namespace)
			if _, _, err := promote(args...); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: got %v, want %q", args, err, want)
			}
		}
		checkNothingPromoted(t, env, namespace)
	})
	t.Run("output and dry run create nothing", func(t *testing.T) {
		out, _, err := promote("deployment", "web", "-o", "json")
		if err != nil || strings.Contains(out, "resourceVersion") || !strings.Contains(out, `"kind": "PropagationPolicy"`) {
			t.Errorf("the output is %s, the error %v", out, err)
		}
		if _, stderr, err := promote("deployment", "web", "-d", "--dry-run"); err != nil || !strings.Contains(stderr, "dry run: Deployment "+namespace+"/web can be promoted") {
			t.Errorf("stderr is %s, the error %v", stderr, err)
		}
		checkNothingPromoted(t, env, namespace)
	})
	t.Run("a failed promotion deletes what it created", func(t *testing.T) {
		_, stderr, err := promote("deployment", "web", "-d", "--policy-name", "Not_A_Name")
		if err == nil || !strings.Contains(err.Error(), "creating PropagationPolicy "+namespace+"/Not_A_Name in the control plane") {
			t.Errorf("got %v", err)
		}
		if want := "deleted ConfigMap " + namespace + "/settings from the control plane"; !strings.Contains(stderr, want) {
			t.Errorf("stderr is %q, want %q in it", stderr, want)
		}
		checkNothingPromoted(t, env, namespace)
		await(t, env.Karmada, configMap(namespace, "shared"), exists)
	})
	t.Run("the object and its dependencies are taken over", func(t *testing.T) {
		out, stderr, err := promote("deployments.apps", "web", "-d")
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`Dependency resource "/v1, Resource=configmaps"(%[1]s/settings) is promoted successfully
ResourceTemplate (%[1]s/web) is created successfully
PropagationPolicy (%[1]s/%[2]s) is created successfully
Resource "apps/v1, Resource=deployments"(%[1]s/web) is promoted successfully
`, namespace, promotionPolicyName(namespace, "web"))
		if err := checkEqual("output", want, out); err != nil {
			t.Error(err)
		}
		for _, part := range []string{
			`Dependency resource "/v1, Resource=configmaps"(` + namespace + `/shared) already exists in the control plane`,
			"Secret " + namespace + `/absent is a dependency but does not exist in member "origin": it is skipped`,
		} {
			if !strings.Contains(stderr, part) {
				t.Errorf("stderr is %q, want %q in it", stderr, part)
			}
		}
		awaitTakenOver(t, env, deployment(namespace, "web", 2), web.UID)
		awaitTakenOver(t, env, configMap(namespace, "settings"), settings.UID)
	})
	t.Run("a second promotion changes nothing", func(t *testing.T) {
		out, stderr, err := promote("deployment", "web")
		if err != nil || out != "" || !strings.Contains(stderr, `warning: Resource "apps/v1, Resource=deployments"(`+namespace+`/web) already exists in the control plane`) {
			t.Errorf("got %q, %q, %v", out, stderr, err)
		}
	})
	t.Run("a NodePort Service keeps its node port and cluster IP", func(t *testing.T) {
		port := corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}
		front := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "front"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{port}},
		}
		createInMember3(t, env, front)
		if _, stderr, err := promote("service", "front"); err != nil {
			t.Fatal(err, stderr)
		}
		template := await(t, env.Karmada, front.DeepCopy(), exists)
		if err := checkEqual("node port of the template", front.Spec.Ports[0].NodePort, template.Spec.Ports[0].NodePort); err != nil {
			t.Error(err)
		}
		await(t, env.Karmada, workOf(t, origin, front), isApplied)
		awaitTakenOver(t, env, front.DeepCopy(), front.UID)
		awaitInMember(t, env, member3, front.DeepCopy(), func(s *corev1.Service) error {
			return errors.Join(checkEqual("ports", front.Spec.Ports, s.Spec.Ports), checkEqual("address", front.Spec.ClusterIP, s.Spec.ClusterIP))
		})
	})
	t.Run("the generated name of the policy belongs to the policy of another object", func(t *testing.T) {
		extra := configMap(namespace, "extra")
		createInMember3(t, env, extra)
		kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
		other := policyFor(t, placementOn(origin), configMap(namespace, "another"))
		other.Name = policy.GeneratedName(kind, namespace, extra.Name)
		env.Create(t, other)
		out, stderr, err := promote("configmap", extra.Name)
		if err != nil {
			t.Fatal(err, stderr)
		}
		if want := "PropagationPolicy (" + namespace + "/" + policy.UnambiguousName(kind, namespace, extra.Name) + ") is created successfully"; !strings.Contains(out, want) {
			t.Errorf("the output is %q, want %q in it", out, want)
		}
		if err := errors.Join(env.Karmada.Get(t.Context(), client.ObjectKeyFromObject(other), other), checkEqual("selected object", "another", other.Spec.ResourceSelectors[0].Name)); err != nil {
			t.Error(err)
		}
		awaitTakenOver(t, env, extra.DeepCopy(), extra.UID)
	})
	t.Run("a cluster-scoped object, with the kubeconfig of the member", func(t *testing.T) { testPromoteClusterRole(t, env, origin) })
}

// createPromotionSources creates the member objects that the arguments of a failing command
// refer to.
func createPromotionSources(t *testing.T, env *testenv.Env, args []string, namespace string) {
	t.Helper()
	switch args[0] {
	case "lease":
		args[1] = "kept"
		createInMember3(t, env, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: args[1]}})
	case "configmap":
		createInMember3(t, env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: args[3]}}, configMap(args[3], args[1]))
	}
}

// checkNothingPromoted checks that no template and no policy was created.
func checkNothingPromoted(t *testing.T, env *testenv.Env, namespace string) {
	t.Helper()
	for _, object := range []client.Object{
		deployment(namespace, "web", 2), configMap(namespace, "settings"),
		&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: promotionPolicyName(namespace, "web")}},
	} {
		if err := checkAbsent(t.Context(), env.Karmada, object); err != nil {
			t.Errorf("%T %s: %v", object, object.GetName(), err)
		}
	}
}

// awaitTakenOver waits until a member object is managed and checks that its UID is the same.
func awaitTakenOver[T client.Object](t *testing.T, env *testenv.Env, template T, uid types.UID) {
	t.Helper()
	awaitInMember(t, env, member3, template, func(object T) error {
		if object.GetLabels()[workv1alpha1.ManagedByKarmadaLabel] != workv1alpha1.ManagedByKarmadaLabelValue {
			return fmt.Errorf("the object is not managed: labels %v", object.GetLabels())
		}
		return checkEqual("UID", uid, object.GetUID())
	})
}

func testPromoteClusterRole(t *testing.T, env *testenv.Env, cluster string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer-" + string(uuid.NewUUID())[:8]},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
	}
	createInMember3(t, env, role)
	policyName := policy.GeneratedName(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), "", role.Name)
	template := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}}
	cleanUp(t, env, template, &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}})
	out, stderr, err := runKarmadactl(t, env, "promote", "clusterrole", role.Name, "-C", cluster, "--cluster-kubeconfig", writeKubeconfig(t, env.Members[member3].Config))
	if err != nil {
		t.Fatal(err, stderr)
	}
	want := fmt.Sprintf(`ResourceTemplate (%[1]s) is created successfully
ClusterPropagationPolicy %[2]s is created successfully
Resource "rbac.authorization.k8s.io/v1, Resource=clusterroles"(%[1]s) is promoted successfully
`, role.Name, policyName)
	if err := checkEqual("output", want, out); err != nil {
		t.Error(err)
	}
	awaitTakenOver(t, env, template, role.UID)
}

// awaitImpersonator waits until member3 lets the control plane impersonate users.
func awaitImpersonator(t *testing.T, env *testenv.Env, cluster string) {
	t.Helper()
	await(t, memberClient(env, member3), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: impersonatorAccount}}, exists)
	await(t, memberClient(env, member3), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: impersonatorAccount}}, exists)
	clusterClient := newClientset(t, proxyConfig(env.Config, cluster))
	testenv.Eventually(t, "the member permits the impersonation", func(ctx context.Context) error {
		_, err := clusterClient.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// promotionPolicyName returns the name of the policy that a promoted Deployment gets.
func promotionPolicyName(namespace, name string) string {
	return policy.GeneratedName(appsv1.SchemeGroupVersion.WithKind("Deployment"), namespace, name)
}
