package integration

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/testenv"
)

func TestRegisteredClusterBecomesReadyAndTellsWhatItServes(t *testing.T) {
	testenv.Eventually(t, "cluster", func(ctx context.Context) error {
		cluster := &clusterv1alpha1.Cluster{}
		if err := env.Karmada.Get(ctx, client.ObjectKey{Name: member1}, cluster); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
			return fmt.Errorf("conditions are %v", cluster.Status.Conditions)
		}
		return nil
	})
}
