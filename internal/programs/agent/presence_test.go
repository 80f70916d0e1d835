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

// answers are what a control plane says of a Cluster, one after the other; the last
// one stays.
type answers struct {
	client.Reader
	errs []error
	id   string
}

func (a *answers) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	err := a.errs[0]
	if len(a.errs) > 1 {
		a.errs = a.errs[1:]
	}
	if cluster, ok := into.(*clusterv1alpha1.Cluster); ok {
		cluster.Name, cluster.Spec.ID = "east", a.id
	}
	return err
}

func TestAnAgentThatIsRefusedLooksForItsCluster(t *testing.T) {
	resource := schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusters"}
	denied, missing := apierrors.NewForbidden(resource, "east", nil), apierrors.NewNotFound(resource, "east")
	tests := map[string]struct {
		errs  []error
		other bool
		want  error
	}{
		"a Cluster that is there is kept":            {errs: []error{nil}},
		"an API server that starts refuses at first": {errs: []error{denied, denied, nil}},
		"one that starts may not know Clusters":      {errs: []error{missing, nil}},
		"rights that are gone are so for long":       {errs: []error{denied}, want: errDismissed},
		"a Cluster that is gone, too":                {errs: []error{missing}, want: errDismissed},
		"no answer says nothing":                     {errs: []error{errors.New("connection refused")}},
		"the name may be that of another cluster":    {errs: []error{nil}, other: true, want: &registration.RegisteredError{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				says := &answers{errs: test.errs, id: "1"}
				if test.other {
					says.id = "2"
				}
				p := &presence{agent: &agent{clusters: says, cluster: enroll.Agent{Name: "east"}}, id: "1"}
				err := p.check(ctx)
				if test.other {
					if !isForeign(err) {
						t.Errorf("error %v, want one of another cluster", err)
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
