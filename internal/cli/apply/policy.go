package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"karmada.io/karmada/internal/domain/policy"
)

// newPolicy is the policy of a kind that sends one object to clusters, to all if
// there are none. It holds nothing else, so that applying it again changes only
// what the user changed.
func newPolicy(kind schema.GroupVersionKind, object *resource.Info, clusters []string) *unstructured.Unstructured {
	selected := object.Mapping.GroupVersionKind
	apiVersion, kindName := selected.ToAPIVersionAndKind()
	selector := map[string]any{"apiVersion": apiVersion, "kind": kindName, "name": object.Name}
	if object.Namespaced() {
		selector["namespace"] = object.Namespace
	}
	affinity := map[string]any{}
	if len(clusters) > 0 {
		affinity["clusterNames"] = anyOf(clusters)
	}
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"resourceSelectors": []any{selector},
		"placement":         map[string]any{"clusterAffinity": affinity},
	}}}
	made.SetGroupVersionKind(kind)
	made.SetName(policy.NameFor(selected, object.Namespace, object.Name))
	if object.Namespaced() {
		made.SetNamespace(object.Namespace)
	}
	return made
}

func anyOf(names []string) []any {
	values := make([]any, 0, len(names))
	for _, name := range names {
		values = append(values, name)
	}
	return values
}
