package execution

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestAMissingRightHoldsNoClusterThatLeaves(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New(text))
	}
	denied := forbidden(`User "x" cannot get resource "configmaps" in API group "" in the namespace "shop"`)
	leaving, stays := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}, &clusterv1alpha1.Cluster{}
	tests := map[string]struct {
		cluster *clusterv1alpha1.Cluster
		failure error
		want    int
	}{
		"a right that is missing, in a cluster that stays":  {stays, denied, 1},
		"a right that is missing, in a cluster that leaves": {leaving, denied, 0},
		"admission refuses, in a cluster that leaves":       {leaving, forbidden("protected"), 1},
		"no answer of a cluster that leaves":                {leaving, errors.New("no answer"), 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := failuresThatHold(test.cluster, []error{test.failure}); len(got) != test.want {
				t.Errorf("held by %v, want %d", got, test.want)
			}
		})
	}
}
