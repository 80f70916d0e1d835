package loop

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// countingCache counts the indexes that are added to it.
type countingCache struct {
	cache.Cache
	added int
	err   error
}

func (c *countingCache) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	c.added++
	return c.err
}

func TestIndexIsAddedOncePerType(t *testing.T) {
	inner := &countingCache{}
	shared := ShareIndexes(inner)
	for range 3 {
		if err := AddIndexes(shared, BindingsByCluster, BindingsByTarget, WorksByBinding); err != nil {
			t.Fatal(err)
		}
	}
	if want := 2 + 2 + 1; inner.added != want { // both scopes of bindings, and Works
		t.Errorf("%d indexes were added, want %d", inner.added, want)
	}
}

func TestIndexIsAddedAgainAfterAnError(t *testing.T) {
	inner := &countingCache{err: errUnavailable}
	shared := ShareIndexes(inner)
	if err := AddIndexes(shared, WorksByBinding); !errors.Is(err, errUnavailable) {
		t.Fatalf("error %v", err)
	}
	inner.err = nil
	if err := AddIndexes(shared, WorksByBinding); err != nil || inner.added != 2 {
		t.Errorf("error %v after %d calls", err, inner.added)
	}
}

func TestIndexKeys(t *testing.T) {
	bound := newBinding(true, "web", func(bound binding.Object) {
		bound.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p1"})
		spec := bound.BindingSpec()
		spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
		spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "front", Clusters: []workv1alpha2.TargetCluster{{Name: "m5"}}}}
	})
	clusterScoped := newBinding(false, "role", func(bound binding.Object) {
		bound.BindingSpec().Resource = workv1alpha2.ObjectReference{APIVersion: "rbac/v1", Kind: "ClusterRole", Name: "role"}
	})
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b1"},
		Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "web"},
	}}
	tests := map[string]struct {
		index  Index
		object client.Object
		want   []string
	}{
		"the ID of the binding of a Work":                        {WorksByBindingID, of, []string{workv1alpha2.ResourceBindingPermanentIDLabel + "=b1"}},
		"the binding of a Work":                                  {WorksByBinding, of, []string{"shop/web"}},
		"a Work of another client":                               {WorksByBinding, &workv1alpha1.Work{}, nil},
		"scheduled to a cluster and evicted from another":        {BindingsByCluster, bound, []string{"m1", "m2"}},
		"required in a cluster":                                  {BindingsByTarget, bound, []string{"m1", "m5"}},
		"kind and namespace of a template":                       {BindingsByTemplate, bound, []string{TemplateKindKey("", "apps/v1", "Deployment"), TemplateKindKey("shop", "apps/v1", "Deployment"), TemplateNamespaceKey("shop")}},
		"kind of a cluster-scoped template":                      {BindingsByTemplate, clusterScoped, []string{TemplateKindKey("", "rbac/v1", "ClusterRole")}},
		"a binding that requires another":                        {BindingsByDependent, bound, []string{"shop/front"}},
		"the policy of a binding":                                {BindingsByPolicy, bound, []string{"p1"}},
		"a binding without a policy":                             {BindingsByPolicy, clusterScoped, nil},
		"an object of another type in an index of the bindings ": {BindingsByTarget, of, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.index.Keys(test.object)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorksOf(t *testing.T) {
	bound := newBinding(true, "web", func(bound binding.Object) {
		bound.SetNamespace("shop")
		bound.SetLabels(map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b1"})
	})
	work := func(name, id, bindingName string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-m1", Name: name, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id},
			Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: bindingName},
		}}
	}
	store := newBindingStore(t, nil, work("own", "b1", "web"), work("of-a-copy", "b1", "copy"), work("other", "b2", "web"))
	found, err := ListWorksOfBinding(t.Context(), store, bound)
	if err != nil || len(found) != 1 || found[0].Name != "own" {
		t.Errorf("found %v, error %v", found, err)
	}
	if _, err := ListWorksOfBinding(t.Context(), newBindingStore(t, errUnavailable), bound); !errors.Is(err, errUnavailable) {
		t.Errorf("error %v", err)
	}
}
