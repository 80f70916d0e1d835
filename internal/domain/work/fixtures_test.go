package work

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: template-uid
  generation: 7
  resourceVersion: "12"
  labels: {app: web, propagationpolicy.karmada.io/permanent-id: policy-id}
  annotations: {note: hi, deployment.kubernetes.io/revision: "3"}
  finalizers: [some/one]
spec: {replicas: 5, template: {spec: {containers: [{name: web, image: nginx}]}}}
status: {replicas: 5}
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

func decodedManifest(t testing.TB, of *workv1alpha1.Work) *unstructured.Unstructured {
	t.Helper()
	if len(of.Spec.Workload.Manifests) != 1 {
		t.Fatalf("%d manifests, want 1", len(of.Spec.Workload.Manifests))
	}
	manifest, err := DecodeManifest(of.Spec.Workload.Manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}

func newCluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// resourceBinding returns a binding with the targets m1, m2 and so on, which have the given replicas.
func resourceBinding(replicas ...int32) *workv1alpha2.ResourceBinding {
	result := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment",
		Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "binding-id"},
	}}
	for i, each := range replicas {
		result.Spec.Clusters = append(result.Spec.Clusters, workv1alpha2.TargetCluster{Name: "m" + string(rune('1'+i)), Replicas: each})
		result.Spec.Replicas += each
	}
	return result
}

// inputForFirstTarget returns the RenderInput for the binding's first target.
func inputForFirstTarget(template *unstructured.Unstructured, of binding.Object) RenderInput {
	target := binding.TargetClusters(of.BindingSpec())[0]
	return RenderInput{
		Template: template, Binding: of, Cluster: newCluster(target.Name), Target: target,
		ReviseReplicas: setReplicas, PermanentID: "work-id",
	}
}

// setReplicas sets spec.replicas if the object has this field.
func setReplicas(object *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas"); !found {
		return object, nil
	}
	return object, unstructured.SetNestedField(object.Object, replicas, "spec", "replicas")
}
