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

// targeted tells whether a binding is still scheduled to the cluster.
func (r *reconciler) targeted(ctx context.Context, name string) (bool, error) {
	for _, list := range []client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}} {
		if err := r.karmada.List(ctx, list, client.MatchingFields{targetIndex: name}, client.Limit(1)); err != nil {
			return false, fmt.Errorf("listing bindings of cluster %q: %w", name, err)
		}
		switch bindings := list.(type) {
		case *workv1alpha2.ResourceBindingList:
			if len(bindings.Items) > 0 {
				return true, nil
			}
		case *workv1alpha2.ClusterResourceBindingList:
			if len(bindings.Items) > 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

// executionSpace is a namespace as the shared cache holds them.
func executionSpace(name string) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	return namespace
}
