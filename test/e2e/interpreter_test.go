package e2e

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/examples/interpreter-webhook/workload"
	"karmada.io/karmada/pkg/webhook/interpreter"
)

// kubectlIn runs kubectl with a context of the shared installation, and fails the test if kubectl
// fails. An empty context is the control plane.
func kubectlIn(t *testing.T, kubeconfig, context string, args ...string) string {
	t.Helper()
	if context != "" {
		args = append(args, "--context", context)
	}
	result := runKubectl(t.Context(), kubeconfig, args...)
	if result.code != 0 {
		t.Fatalf("kubectl %s: %s", strings.Join(args, " "), result.stderr)
	}
	return result.stdout
}

// awaitKindInMembers waits until member1 and member2 report that they serve a group and version.
func awaitKindInMembers(t *testing.T, groupVersion string) {
	t.Helper()
	for _, name := range []string{member1, member2} {
		eventually(t, name+" serves "+groupVersion, func(ctx context.Context) error {
			cluster := &clusterv1alpha1.Cluster{}
			if err := shared.karmada.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
				return err
			}
			for _, enabled := range cluster.Status.APIEnablements {
				if enabled.GroupVersion == groupVersion {
					return nil
				}
			}
			return errors.New("the status of the cluster does not contain it")
		})
	}
}

// awaitOutput waits until kubectl prints the wanted text.
func awaitOutput(t *testing.T, kubeconfig, want string, args ...string) {
	t.Helper()
	eventually(t, "output of kubectl "+strings.Join(args, " "), func(ctx context.Context) error {
		result := runKubectl(ctx, kubeconfig, args...)
		if got := strings.TrimSpace(result.stdout); got != want {
			return fmt.Errorf("kubectl printed %q %s, want %q", got, result.stderr, want)
		}
		return nil
	})
}

// TestInterpreterWebhook uses the manifests and the server of the example.
func TestInterpreterWebhook(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(interpreter.NewWebhook(workload.NewHandler()))
	defer server.Close()
	bundle := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	replacements := strings.NewReplacer("CA_BUNDLE", bundle, "https://127.0.0.1:8443/interpret", server.URL+"/interpret")
	directory := t.TempDir()
	manifest := func(name string) string {
		content, err := os.ReadFile(filepath.Join("..", "..", "examples", "interpreter-webhook", "manifests", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(replacements.Replace(string(content))), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kubeconfig := shared.karmadaConfig() + string(filepath.ListSeparator) + shared.membersConfig()
	apply := func(names ...string) {
		for _, name := range names {
			path := manifest(name)
			kubectlIn(t, kubeconfig, "", "apply", "-f", path)
			t.Cleanup(func() {
				runKubectl(context.WithoutCancel(t.Context()), kubeconfig, "delete", "--ignore-not-found", "--wait=false", "-f", path)
			})
		}
	}
	apply("crd.yaml", "crd-policy.yaml", "configuration-url.yaml")
	awaitKindInMembers(t, "workload.example.io/v1alpha1")
	apply("workload.yaml", "propagationpolicy.yaml")

	for _, member := range []string{member1, member2} {
		awaitOutput(t, kubeconfig, "2", "get", "workload", "web", "-o", "jsonpath={.spec.replicas}", "--context", member)
		awaitOutput(t, kubeconfig, "hello", "get", "configmap", "web-pages", "-o", "jsonpath={.data.index\\.html}", "--context", member)
		kubectlIn(t, kubeconfig, member, "patch", "workload", "web", "--subresource", "status", "--type", "merge", "-p", `{"status":{"readyReplicas":2}}`)
	}
	awaitOutput(t, kubeconfig, "4", "get", "workload", "web", "-o", "jsonpath={.status.readyReplicas}")
	awaitOutput(t, kubeconfig, "Healthy Healthy", "get", "rb", "web-workload", "-o", "jsonpath={.status.aggregatedStatus[*].health}")

	server.Close()
	kubectlIn(t, kubeconfig, "", "patch", "workload", "web", "--type", "merge", "-p", `{"spec":{"replicas":6}}`)
	eventually(t, "the condition names the webhook", func(ctx context.Context) error {
		message := runKubectl(ctx, kubeconfig, "get", "rb", "web-workload", "-o", `jsonpath={.status.conditions[?(@.type=="TemplateInterpreted")].message}`).stdout
		if !containsAll(message, []string{"example/workloads.example.com", "InterpretReplica", strings.TrimPrefix(server.URL, "https://")}) {
			return fmt.Errorf("message %q", message)
		}
		return nil
	})
	awaitOutput(t, kubeconfig, "2", "get", "workload", "web", "-o", "jsonpath={.spec.replicas}", "--context", member1)
}

const cloneSetKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clonesets.apps.kruise.io}
spec:
  group: apps.kruise.io
  scope: Namespaced
  names: {kind: CloneSet, plural: clonesets, singular: cloneset}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestShippedKind propagates a kind whose rules are part of the program.
func TestShippedKind(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	directory := t.TempDir()
	kubeconfig := shared.karmadaConfig() + string(filepath.ListSeparator) + shared.membersConfig()
	apply := func(name, context, content string) {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		kubectlIn(t, kubeconfig, context, "apply", "-f", path)
	}
	for _, context := range []string{"", member1, member2} {
		apply("crd.yaml", context, cloneSetKind)
	}
	awaitKindInMembers(t, "apps.kruise.io/v1alpha1")
	apply("cloneset.yaml", "", fmt.Sprintf(`
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 6
  template: {spec: {containers: [{name: web, image: nginx, envFrom: [{configMapRef: {name: settings}}]}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: %[1]s}
data: {color: blue}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %[1]s}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}]
  placement:
    clusterAffinity: {clusterNames: [%[2]s, %[3]s]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
`, namespace, member1, member2))
	for _, member := range []string{member1, member2} {
		awaitOutput(t, kubeconfig, "3", "get", "cloneset", "web", "-n", namespace, "-o", "jsonpath={.spec.replicas}", "--context", member)
		awaitOutput(t, kubeconfig, "blue", "get", "configmap", "settings", "-n", namespace, "-o", "jsonpath={.data.color}", "--context", member)
		kubectlIn(t, kubeconfig, member, "patch", "cloneset", "web", "-n", namespace, "--subresource", "status", "--type", "merge", "-p",
			`{"status":{"observedGeneration":1,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3}}`)
	}
	awaitOutput(t, kubeconfig, "6 6", "get", "cloneset", "web", "-n", namespace, "-o", "jsonpath={.status.replicas} {.status.availableReplicas}")
	awaitOutput(t, kubeconfig, "Healthy Healthy", "get", "rb", "web-cloneset", "-n", namespace, "-o", "jsonpath={.status.aggregatedStatus[*].health}")
}
