package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/enroll"
)

// fakeClusters returns the given errors for requests for the Cluster, one after another. The last
// error is repeated.
type fakeClusters struct {
	client.Reader
	errs []error
	id   string
}

func (f *fakeClusters) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	err := f.errs[0]
	if len(f.errs) > 1 {
		f.errs = f.errs[1:]
	}
	if cluster, ok := into.(*clusterv1alpha1.Cluster); ok {
		cluster.Name, cluster.Spec.ID = "east", f.id
	}
	return err
}

func TestForbiddenAgentChecksItsCluster(t *testing.T) {
	resource := schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusters"}
	denied, missing := apierrors.NewForbidden(resource, "east", nil), apierrors.NewNotFound(resource, "east")
	tests := map[string]struct {
		errs    []error
		otherID bool
		want    error
	}{
		"an existing Cluster": {errs: []error{nil}},
		"an API server that is starting returns Forbidden at first": {errs: []error{denied, denied, nil}},
		"an API server that is starting returns NotFound at first":  {errs: []error{missing, nil}},
		"Forbidden for a long time":                                 {errs: []error{denied}, want: errClusterDeleted},
		"NotFound for a long time":                                  {errs: []error{missing}, want: errClusterDeleted},
		"an unavailable API server is ignored":                      {errs: []error{errors.New("connection refused")}},
		"the Cluster belongs to another cluster":                    {errs: []error{nil}, otherID: true, want: &registration.RegisteredError{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				clusters := &fakeClusters{errs: test.errs, id: "1"}
				if test.otherID {
					clusters.id = "2"
				}
				p := &clusterWatch{agent: &agent{clusters: clusters, cluster: enroll.Enrollment{Name: "east"}}, id: "1"}
				err := p.checkCluster(ctx)
				if test.otherID {
					if !isRegisteredByOther(err) {
						t.Errorf("error %v, want a RegisteredError", err)
					}
					return
				}
				if !errors.Is(err, test.want) {
					t.Errorf("error %v, want %v", err, test.want)
				}
			})
		})
	}
}
