package override

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, tier: front}}
spec:
  replicas: 3
  template:
    spec:
      initContainers:
      - {name: init, image: busybox:1.36}
      containers:
      - {name: web, image: "docker.io/library/nginx:1.27", command: [nginx, -g], args: [-a, -b, -a]}
      - {name: side, image: side}
`

func parseObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	result := &unstructured.Unstructured{}
	if err := result.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return result
}

func parseOverriders(t testing.TB, text string) policyv1alpha1.Overriders {
	t.Helper()
	var result policyv1alpha1.Overriders
	if err := yaml.UnmarshalStrict([]byte(text), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func newClusterPolicy(t testing.TB, name, spec string) *policyv1alpha1.ClusterOverridePolicy {
	t.Helper()
	result := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &result.Spec); err != nil {
		t.Fatal(err)
	}
	return result
}

func newNamespacePolicy(t testing.TB, namespace, name, spec string) *policyv1alpha1.OverridePolicy {
	t.Helper()
	result := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &result.Spec); err != nil {
		t.Fatal(err)
	}
	return result
}

func newMember(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": "prod"}}}
}

// applyOverriders applies a policy that selects all objects and contains a single set of
// overriders.
func applyOverriders(t testing.TB, manifest *unstructured.Unstructured, text string) (*unstructured.Unstructured, error) {
	t.Helper()
	source := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	source.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: parseOverriders(t, text)}}
	result, _, err := Apply(manifest, newMember("m1"), []Object{source}, nil)
	return result, err
}
