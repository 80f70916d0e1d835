package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// globalProxy is the path of the API server that serves the objects of all members.
const globalProxy = "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy"

// newRegistry returns a ResourceRegistry of kinds in the joined members.
func newRegistry(name string, kinds ...string) *unstructured.Unstructured {
	var selectors []any
	for _, kind := range kinds {
		version, kind, _ := strings.Cut(kind, " ")
		selectors = append(selectors, map[string]any{"apiVersion": version, "kind": kind})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "search.karmada.io/v1alpha1", "kind": "ResourceRegistry", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"targetCluster": map[string]any{"clusterNames": []any{member1, member2}}, "resourceSelectors": selectors},
	}}
}

// TestGlobalProxy uses the global proxy with kubectl as if all members were one cluster.
func TestGlobalProxy(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createObjects(t, shared, newRegistry(namespace, "v1 Pod", "apps/v1 Deployment", "v1 ConfigMap"))
	file, _ := newProgramDeployment(t, namespace)
	checkOutput(t, runKarmadactl(t, namespace, "apply", "-f", file, "-C", member1), "created")
	for _, member := range []string{member1, member2} {
		createInMember(t, member, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-" + member, Labels: map[string]string{"app": "search"}},
			Data:       map[string]string{"color": "blue"},
		})
	}
	kubeconfig := writeKubeconfigAt(t, shared, globalProxy)
	run := func(args ...string) commandResult {
		return runKubectl(t.Context(), kubeconfig, append([]string{"-n", namespace}, args...)...)
	}

	eventually(t, "the ConfigMaps of both members in one list", func(context.Context) error {
		found := run("get", "configmaps", "-l", "app=search")
		if !containsAll(found.stdout, []string{"of-" + member1, "of-" + member2, "CLUSTER", member1, member2}) {
			return fmt.Errorf("stdout %s\nstderr %s", found.stdout, found.stderr)
		}
		return nil
	})
	pod := ""
	eventuallyWithin(t, startTimeout, "the log of a Pod", func(context.Context) error {
		found := run("get", "pods", "-o", "jsonpath={.items[*].metadata.name}")
		if pod = found.stdout; pod == "" {
			return fmt.Errorf("no Pod: %s", found.stderr)
		}
		if logs := run("logs", pod); logs.code != 0 || logs.stdout == "" {
			return fmt.Errorf("logs: %s", logs.stderr)
		}
		return nil
	})
	checkOutput(t, run("exec", pod, "--", "karmada-scheduler", "version"), "karmada-scheduler")
	checkOutput(t, run("get", "pod", pod, "-o", `jsonpath={.metadata.annotations.resource\.karmada\.io/cached-from-cluster}`), member1)
	checkOutput(t, run("describe", "pod", pod), "karmada-scheduler")
	checkOutput(t, run("get", "deployments,pods"), "deployment.apps/program", "pod/"+pod)
	checkOutput(t, run("rollout", "status", "deployment/program", "--timeout=2m"), "successfully rolled out")

	watched := bufio.NewScanner(startKubectl(t, kubeconfig, "get", "configmaps", "-n", namespace, "--watch", "-o", "jsonpath={.metadata.name}:{.metadata.labels.color}{\"\\n\"}"))
	awaitLine(t, watched, "of-"+member2+":")
	checkOutput(t, run("label", "configmap", "of-"+member2, "color=red"), "labeled")
	awaitLine(t, watched, "of-"+member2+":red")
	checkOutput(t, run("annotate", "configmap", "of-"+member1, "note=kept", "--resource-version="+versionOf(t, run, "of-"+member1)), "annotated")
	checkOutput(t, run("delete", "configmap", "of-"+member2), "deleted")

	run("create", "configmap", "new").mustFail(t, 1, "does not know for which cluster")
	run("get", "configmap", "none").mustFail(t, 1, `configmaps "none" not found`)
	createInMember(t, member2, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-" + member1}})
	eventually(t, "an object of two members is ambiguous", func(context.Context) error {
		if found := run("get", "configmap", "of-"+member1); !strings.Contains(found.stderr, "ambiguous objects in clusters ["+member1+", "+member2+"]") {
			return fmt.Errorf("stdout %s\nstderr %s", found.stdout, found.stderr)
		}
		return nil
	})
}

// versionOf returns the resourceVersion of a ConfigMap.
func versionOf(t *testing.T, run func(...string) commandResult, name string) string {
	t.Helper()
	found := run("get", "configmap", name, "-o", "jsonpath={.metadata.resourceVersion}")
	found.mustSucceed(t)
	return found.stdout
}

// awaitLine reads lines until one is the wanted line.
func awaitLine(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	var read []string
	for lines.Scan() {
		if read = append(read, lines.Text()); lines.Text() == want {
			return
		}
	}
	t.Fatalf("kubectl ended without %q: %q", want, read)
}

// createInMember creates objects in a member, and deletes them after the test.
func createInMember(t *testing.T, member string, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		// The namespace of the test reaches the member a moment later.
		eventually(t, "creating "+object.GetName()+" in "+member, func(ctx context.Context) error {
			return shared.members[member].Create(ctx, object)
		})
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(shared.members[member].Delete(context.WithoutCancel(t.Context()), object)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSearch finds objects of all members with karmadactl search, as the administrator and as a user
// who may read one namespace of one member.
func TestSearch(t *testing.T) {
	t.Parallel()
	namespace, other := newNamespace(t), newNamespace(t)
	createObjects(t, shared, newRegistry(namespace, "v1 ConfigMap"))
	for member, in := range map[string]string{member1: namespace, member2: other} {
		createInMember(t, member, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "found", Labels: map[string]string{"test": namespace}}, Data: map[string]string{"text": "an unusual flamingo"},
		})
	}
	search := func(args ...string) commandResult {
		return shared.karmadactl(t.Context(), append([]string{"search"}, args...)...)
	}
	eventually(t, "both ConfigMaps are found", func(context.Context) error {
		for _, query := range []string{"flamingo label.test=" + namespace, "kind:ConfigMap label.test=" + namespace + " cluster:member*"} {
			found := search(query)
			if !containsAll(found.stdout, []string{"CLUSTER", member1, member2, namespace, other, "found"}) {
				return fmt.Errorf("%s: stdout %s\nstderr %s", query, found.stdout, found.stderr)
			}
		}
		return nil
	})
	found := search("flamingo label.test="+namespace+" -cluster:"+member2, "-o", "json")
	found.mustSucceed(t)
	var results struct {
		Items []struct{ Cluster, Namespace, Name string }
	}
	if err := json.Unmarshal([]byte(found.stdout), &results); err != nil || len(results.Items) != 1 || results.Items[0].Cluster != member1 {
		t.Errorf("found %s, %v", found.stdout, err)
	}
	search("kindd:Pod").mustFail(t, 2, "column 1", "did you mean kind?")

	user := "reader-" + namespace
	createObjects(t, shared, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"search.karmada.io"}, Resources: []string{"search", "proxying/proxy"}, Verbs: []string{"get"}},
		},
	}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	createInMember(t, member1, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}},
	}, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	eventually(t, "the user finds only what he may read", func(context.Context) error {
		found := search("label.test="+namespace, "-o", "name", "--as", user)
		if !strings.Contains(found.stdout, member1) || strings.Contains(found.stdout, member2) {
			return fmt.Errorf("stdout %s\nstderr %s", found.stdout, found.stderr)
		}
		return nil
	})
	kubeconfig := writeKubeconfigAt(t, shared, globalProxy)
	checkOutput(t, runKubectl(t.Context(), kubeconfig, "get", "configmap", "found", "-n", namespace, "--as", user, "-o", "name"), "configmap/found")
	runKubectl(t.Context(), kubeconfig, "get", "configmaps", "-n", other, "--as", user).mustFail(t, 1, "cannot list resource")
	runKubectl(t.Context(), kubeconfig, "get", "secrets", "-A", "--as", user).mustFail(t, 1, "forbidden")
}
