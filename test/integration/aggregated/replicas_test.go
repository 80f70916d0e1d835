package aggregated_test

import (
	"fmt"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/testenv/testetcd"
)

func TestClusterIDIsUniqueAcrossReplicas(t *testing.T) {
	storage := testetcd.Start(t)
	replicas := []client.WithWatch{newClient(t, startServer(t, newOptions(t, storage))), newClient(t, startServer(t, newOptions(t, storage)))}
	const ids = 30
	var (
		group    sync.WaitGroup
		mu       sync.Mutex
		accepted = map[string]bool{}
	)
	for id := range ids {
		for i, karmada := range replicas {
			group.Go(func() {
				c := newMemberCluster(fmt.Sprintf("m%d-%d", id, i))
				c.Spec.ID = fmt.Sprintf("id-%d", id)
				err := karmada.Create(t.Context(), c)
				mu.Lock()
				defer mu.Unlock()
				accepted[c.Name] = err == nil
			})
		}
	}
	group.Wait()
	var list clusterv1alpha1.ClusterList
	if err := replicas[0].List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	clustersByID := map[string]string{}
	for _, c := range list.Items {
		if other, taken := clustersByID[c.Spec.ID]; taken {
			t.Errorf("clusters %s and %s have the same ID", other, c.Name)
		}
		clustersByID[c.Spec.ID] = c.Name
		if !accepted[c.Name] {
			t.Errorf("cluster %s is stored, but its creation was rejected", c.Name)
		}
		delete(accepted, c.Name)
	}
	for name, wasAccepted := range accepted {
		if wasAccepted {
			t.Errorf("cluster %s was accepted, but is not stored", name)
		}
	}
}
