package dependency

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetAPIVersion(apiVersion)
	made.SetKind(kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	made.SetUID(types.UID("uid-" + name))
	made.SetResourceVersion("7")
	return made
}

func settings() *unstructured.Unstructured { return object("v1", "ConfigMap", "shop", "settings") }

func named(kind, name string) Reference {
	return Reference{APIVersion: "v1", Kind: kind, Namespace: "shop", Name: name}
}

func selecting(kind, key, value string) Reference {
	return Reference{APIVersion: "v1", Kind: kind, Namespace: "shop", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func thing(kind, namespace, name string) Thing {
	return Thing{Kind: schema.GroupKind{Kind: kind}, Key: types.NamespacedName{Namespace: namespace, Name: name}}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// wish changes a dependent.
type wish func(*workv1alpha2.ResourceBinding)

func overwriting(b *workv1alpha2.ResourceBinding) {
	b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
}

func preserving(b *workv1alpha2.ResourceBinding) {
	b.Spec.PreserveResourcesOnDeletion = new(true)
}

func in(clusters ...string) wish {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = nil
		for _, name := range clusters {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 1})
		}
	}
}

// dependent is the binding of something that needs others, in m1.
func dependent(name string, wishes ...wish) *workv1alpha2.ResourceBinding {
	made := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-" + name},
		},
		Spec: workv1alpha2.ResourceBindingSpec{PropagateDeps: true, ConflictResolution: policyv1alpha1.ConflictAbort},
	}
	for _, change := range append([]wish{in("m1")}, wishes...) {
		change(made)
	}
	return made
}
