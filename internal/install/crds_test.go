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
			err := ensureCRDsServed(t.Context(), extensions, []client.Object{crd}, now)
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
			if err := ensureCRDsServed(t.Context(), extensions, []client.Object{crd}, now.Add(time.Second)); !errors.Is(err, errNotServed) || len(extensions.Actions()) != 1 {
				t.Errorf("a second later: err = %v after %d requests", err, len(extensions.Actions()))
			}
		})
	}
}

func TestKindIsServedOnceDiscoveryContainsIt(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "works.work.karmada.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "work.karmada.io",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Work"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true}, {Name: "v2", Served: true}, {Name: "v3"},
			},
		},
	}
	kinds, err := servedKinds([]client.Object{crd})
	if err != nil {
		t.Fatal(err)
	}
	list := func(version, kind string) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: "work.karmada.io/" + version, APIResources: []metav1.APIResource{{Kind: kind}}}
	}
	tests := map[string]struct {
		discovered []*metav1.APIResourceList
		waits      bool
	}{
		"an unknown group":                   {waits: true},
		"a missing version":                  {discovered: []*metav1.APIResourceList{list("v2", "Work")}, waits: true},
		"a version with another kind":        {discovered: []*metav1.APIResourceList{list("v1", "ResourceBinding"), list("v2", "Work")}, waits: true},
		"the kind in all versions it serves": {discovered: []*metav1.APIResourceList{list("v1", "Work"), list("v2", "Work")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			extensions := fake.NewSimpleClientset()
			extensions.Resources = test.discovered
			if err := verifyKindsDiscovered(extensions.Discovery(), kinds); errors.Is(err, errNotServed) != test.waits || err != nil && !test.waits {
				t.Errorf("err = %v", err)
			}
		})
	}
}
