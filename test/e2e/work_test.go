package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// listWorks returns the Works of a cluster whose templates are in a namespace.
func listWorks(ctx context.Context, i *installation, cluster, namespace string) ([]workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := i.karmada.List(ctx, list, client.InNamespace(clusterv1alpha1.ExecutionNamespacePrefix+cluster)); err != nil {
		return nil, err
	}
	var found []workv1alpha1.Work
	for _, candidate := range list.Items {
		if candidate.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation] == namespace {
			found = append(found, candidate)
		}
	}
	return found, nil
}

// awaitWorkApplied waits until the only Work of the template's namespace has the condition
// Applied with a status and with parts of a message.
func awaitWorkApplied(t *testing.T, template client.Object, cluster string, want metav1.ConditionStatus, parts ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("Work of %s for %s with Applied=%s", template.GetName(), cluster, want), func(ctx context.Context) error {
		works, err := listWorks(ctx, shared, cluster, template.GetNamespace())
		if err != nil {
			return err
		}
		if len(works) != 1 {
			return fmt.Errorf("%d Works", len(works))
		}
		applied := meta.FindStatusCondition(works[0].Status.Conditions, workv1alpha1.WorkApplied)
		switch {
		case applied == nil:
			return errors.New("the condition is not set")
		case applied.Status != want || !containsAll(applied.Message, parts):
			return fmt.Errorf("the condition is %s: %s", applied.Status, applied.Message)
		}
		return nil
	})
}
