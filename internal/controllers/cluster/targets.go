package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// targetIndex finds the bindings that are scheduled to a cluster.
const targetIndex = "cluster-controller/spec.clusters"

func indexTargets(mgr manager.Manager) error {
	for _, object := range bindings() {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), object, targetIndex, targets); err != nil {
			return fmt.Errorf("indexing bindings by cluster: %w", err)
		}
	}
	return nil
}

func bindings() []client.Object {
	return []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}}
}

func targets(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	names := make([]string, 0, len(bound.BindingSpec().Clusters))
	for _, target := range bound.BindingSpec().Clusters {
		names = append(names, target.Name)
	}
	return names
}

// targeting are the bindings that are still scheduled to the cluster. They must not
// be changed.
func (r *reconciler) targeting(ctx context.Context, name string) ([]binding.Object, error) {
	var found []binding.Object
	scheduled := []client.ListOption{client.MatchingFields{targetIndex: name}, client.UnsafeDisableDeepCopy}
	namespaced := &workv1alpha2.ResourceBindingList{}
	if err := r.karmada.List(ctx, namespaced, scheduled...); err != nil {
		return nil, fmt.Errorf("listing ResourceBindings of cluster %q: %w", name, err)
	}
	for i := range namespaced.Items {
		found = append(found, &namespaced.Items[i])
	}
	wide := &workv1alpha2.ClusterResourceBindingList{}
	if err := r.karmada.List(ctx, wide, scheduled...); err != nil {
		return nil, fmt.Errorf("listing ClusterResourceBindings of cluster %q: %w", name, err)
	}
	for i := range wide.Items {
		found = append(found, &wide.Items[i])
	}
	return found, nil
}

// executionSpace is a namespace as the shared cache holds them.
func executionSpace(name string) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	return namespace
}
