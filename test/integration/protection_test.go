package integration

import (
	"testing"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// The test uses the environment of joining, because tests in the environment of shared must see no
// Clusters but the members.
func TestDeletionOfAProtectedClusterIsRejected(t *testing.T) {
	env := joining(t)
	protected := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "treasure", Labels: map[string]string{
			workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways,
		}},
		Spec: clusterv1alpha1.ClusterSpec{ID: uuid.NewString(), SyncMode: clusterv1alpha1.Pull},
	}
	env.Create(t, protected)
	for name, options := range map[string][]client.DeleteOption{
		"deleted":              nil,
		"deleted by a dry run": {client.DryRunAll},
	} {
		t.Run(name, func(t *testing.T) {
			if err := env.Karmada.Delete(t.Context(), protected, options...); !apierrors.IsForbidden(err) {
				t.Errorf("deleting the cluster: got %v, want Forbidden", err)
			}
		})
	}
	testenv.Update(t, env.Karmada, protected, func(c *clusterv1alpha1.Cluster) { c.Labels = nil })
	deleteObject(t, env.Karmada, protected)
	awaitGone(t, env.Karmada, protected)
}
