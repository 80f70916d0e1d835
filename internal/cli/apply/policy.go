package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"karmada.io/karmada/internal/domain/policy"
)

// newPolicy returns a policy that propagates one object to the clusters, or to all clusters if
// clusters is empty. It sets no other fields, so that applying the policy again changes only these
// fields.
func newPolicy(kind schema.GroupVersionKind, object *resource.Info, clusters []string) *unstructured.Unstructured {
	selected := object.Mapping.GroupVersionKind
	apiVersion, kindName := selected.ToAPIVersionAndKind()
	selector := map[string]any{"apiVersion": apiVersion, "kind": kindName, "name": object.Name}
	if object.Namespaced() {
		selector["namespace"] = object.Namespace
	}
	affinity := map[string]any{}
	if len(clusters) > 0 {
		affinity["clusterNames"] = toAnySlice(clusters)
	}
	policyObject := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"resourceSelectors": []any{selector},
		"placement":         map[string]any{"clusterAffinity": affinity},
	}}}
	policyObject.SetGroupVersionKind(kind)
	policyObject.SetName(policy.GeneratedName(selected, object.Namespace, object.Name))
	if object.Namespaced() {
		policyObject.SetNamespace(object.Namespace)
	}
	return policyObject
}

func toAnySlice(names []string) []any {
	values := make([]any, 0, len(names))
	for _, name := range names {
		values = append(values, name)
	}
	return values
}
