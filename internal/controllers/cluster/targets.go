package cluster

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/loop"
)

// bindingsOf returns the bindings that are still scheduled to the cluster. The bindings are shared
// with the cache and must not be changed.
func (r *reconciler) bindingsOf(ctx context.Context, name string) ([]binding.Object, error) {
	var targeting []binding.Object
	for _, namespaced := range []bool{true, false} {
		found, err := loop.ListBindingsInCluster(ctx, r.karmada, namespaced, name)
		if err != nil {
			return nil, err
		}
		targeting = append(targeting, found...)
	}
	return slices.DeleteFunc(targeting, func(bound binding.Object) bool { return !failover.HasTarget(bound.BindingSpec(), name) }), nil
}

// newUnstructuredNamespace returns a Namespace as an unstructured object, because the shared cache
// contains Namespaces in this form.
func newUnstructuredNamespace(name string) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	return namespace
}
