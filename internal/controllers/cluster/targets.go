package cluster

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
)

// targeting are the bindings that are still scheduled to the cluster. They must not
// be changed.
func (r *reconciler) targeting(ctx context.Context, name string) ([]binding.Object, error) {
	var all []binding.Object
	for _, namespaced := range []bool{true, false} {
		found, err := bindings.OfCluster(ctx, r.karmada, namespaced, name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(bound binding.Object) bool { return !failover.Targets(bound.BindingSpec(), name) }), nil
}

// executionSpace is a namespace as the shared cache holds them.
func executionSpace(name string) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	return namespace
}
