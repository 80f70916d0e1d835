package dependency

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func newObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetAPIVersion(apiVersion)
	made.SetKind(kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	made.SetUID(types.UID("uid-" + name))
	made.SetResourceVersion("7")
	return made
}

func settingsConfigMap() *unstructured.Unstructured {
	return newObject("v1", "ConfigMap", "shop", "settings")
}

func namedReference(kind, name string) Reference {
	return Reference{APIVersion: "v1", Kind: kind, Namespace: "shop", Name: name}
}

func selectorReference(kind, key, value string) Reference {
	return Reference{APIVersion: "v1", Kind: kind, Namespace: "shop", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func newThing(kind, namespace, name string) ObjectID {
	return ObjectID{Kind: schema.GroupKind{Kind: kind}, Key: types.NamespacedName{Namespace: namespace, Name: name}}
}

func shopKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// dependentOption changes a dependent.
type dependentOption func(*workv1alpha2.ResourceBinding)

func overwriting(b *workv1alpha2.ResourceBinding) {
	b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
}

func preserving(b *workv1alpha2.ResourceBinding) {
	b.Spec.PreserveResourcesOnDeletion = new(true)
}

func targetClusters(clusters ...string) dependentOption {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = nil
		for _, name := range clusters {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 1})
		}
	}
}

// newDependent returns the binding of a template that has dependencies and runs in cluster m1.
func newDependent(name string, options ...dependentOption) *workv1alpha2.ResourceBinding {
	made := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-" + name},
		},
		Spec: workv1alpha2.ResourceBindingSpec{PropagateDeps: true, ConflictResolution: policyv1alpha1.ConflictAbort},
	}
	for _, change := range append([]dependentOption{targetClusters("m1")}, options...) {
		change(made)
	}
	return made
}
