package execution

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestMissingRightsDoNotBlockTheRemovalOfACluster(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New(text))
	}
	denied := forbidden(`User "x" cannot get resource "configmaps" in API group "" in the namespace "shop"`)
	leaving, registered := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}, &clusterv1alpha1.Cluster{}
	tests := map[string]struct {
		cluster *clusterv1alpha1.Cluster
		failure error
		want    int
	}{
		"a missing right in a registered cluster":          {registered, denied, 1},
		"a missing right in a cluster in removal":          {leaving, denied, 0},
		"a rejection by admission in a cluster in removal": {leaving, forbidden("protected"), 1},
		"no response of a cluster in removal":              {leaving, errors.New("no response"), 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := blockingFailures(test.cluster, []error{test.failure}); len(got) != test.want {
				t.Errorf("blocked by %v, want %d", got, test.want)
			}
		})
	}
}
