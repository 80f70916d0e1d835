package install

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestStuckCRDIsUpdated(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	type conditions = map[apiextensionsv1.CustomResourceDefinitionConditionType]time.Duration
	tests := map[string]struct {
		absent  bool
		since   conditions
		waits   bool
		touched bool
	}{
		"a served CRD":                       {since: conditions{apiextensionsv1.NamesAccepted: time.Hour, apiextensionsv1.Established: time.Hour}},
		"a missing CRD":                      {absent: true, waits: true},
		"a new CRD":                          {waits: true},
		"a CRD with recently accepted names": {since: conditions{apiextensionsv1.NamesAccepted: time.Second}, waits: true},
		"a CRD that is stuck":                {since: conditions{apiextensionsv1.NamesAccepted: time.Hour}, waits: true, touched: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "works.work.karmada.io"}}
			for kind, age := range test.since {
				crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
					Type: kind, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-age)),
				})
			}
			extensions := fake.NewSimpleClientset()
			if !test.absent {
				extensions = fake.NewSimpleClientset(crd)
			}
			err := checkCRDsServed(t.Context(), extensions, []client.Object{crd}, now)
			if errors.Is(err, errNotServed) != test.waits || err != nil && !test.waits {
				t.Errorf("err = %v", err)
			}
			var written []string
			for _, action := range extensions.Actions() {
				if !slices.Contains([]string{"list", "get", "watch"}, action.GetVerb()) {
					written = append(written, action.GetVerb()+" "+action.GetSubresource())
				}
			}
			var want []string
			if test.touched {
				want = []string{"update status"}
			}
			if diff := cmp.Diff(want, written); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if !test.touched {
				return
			}
			extensions.ClearActions()
			if err := checkCRDsServed(t.Context(), extensions, []client.Object{crd}, now.Add(time.Second)); !errors.Is(err, errNotServed) || len(extensions.Actions()) != 1 {
				t.Errorf("a second later: err = %v after %d requests", err, len(extensions.Actions()))
			}
		})
	}
}
