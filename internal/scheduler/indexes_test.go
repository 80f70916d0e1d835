package scheduler

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

// newIndexedStore returns a store that fails the test if all bindings are listed.
func newIndexedStore(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := workv1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	store := looptest.Indexer{ClientBuilder: fake.NewClientBuilder().WithScheme(scheme)}
	if err := loop.AddIndexes(store, indexes(placement.Features{})...); err != nil {
		t.Fatal(err)
	}
	return store.WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, store client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			applied := (&client.ListOptions{}).ApplyOptions(options)
			if applied.FieldSelector == nil || applied.FieldSelector.Empty() {
				t.Errorf("%T is listed without an index", list)
			}
			return store.List(ctx, list, options...)
		},
	}).Build()
}

func TestClusterChangeVisitsOnlyCandidates(t *testing.T) {
	inRegion := &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}
	bound := func(namespaced bool, name string, affinity *policyv1alpha1.ClusterAffinity, targets ...string) client.Object {
		object := binding.New(namespaced)
		object.SetName(name)
		if namespaced {
			object.SetNamespace("shop")
		}
		object.BindingSpec().Placement = &policyv1alpha1.Placement{ClusterAffinity: affinity}
		for _, target := range targets {
			object.BindingSpec().Clusters = append(object.BindingSpec().Clusters, workv1alpha2.TargetCluster{Name: target})
		}
		return object
	}
	named := func(names ...string) *policyv1alpha1.ClusterAffinity {
		return &policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	store := newIndexedStore(t,
		bound(true, "anywhere", nil), bound(false, "anywhere", nil, "m1", "m2"),
		bound(true, "named", named("m1", "m2")), bound(true, "named-elsewhere", named("m3")),
		bound(true, "target", named("m3"), "m1"), bound(false, "target-and-named", named("m1"), "m1"),
		bound(true, "labelled", inRegion), bound(true, "labelled-target", inRegion, "m1"),
	)
	labelled := func(name, region string) *clusterv1alpha1.Cluster {
		cluster := member(name)
		cluster.Labels = map[string]string{"region": region}
		return cluster
	}
	tests := map[string]struct {
		states []*clusterv1alpha1.Cluster
		want   []string
	}{
		"a cluster without labels": {
			[]*clusterv1alpha1.Cluster{member("m1")},
			[]string{"anywhere", "shop/anywhere", "shop/labelled-target", "shop/named", "shop/target", "target-and-named"},
		},
		"a cluster that gets another label": {
			[]*clusterv1alpha1.Cluster{labelled("m1", "us"), labelled("m1", "eu")},
			[]string{"anywhere", "shop/anywhere", "shop/labelled", "shop/labelled-target", "shop/named", "shop/target", "target-and-named"},
		},
		"a cluster that no binding names": {
			[]*clusterv1alpha1.Cluster{labelled("m9", "eu")},
			[]string{"anywhere", "shop/anywhere", "shop/labelled", "shop/labelled-target"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var visited []string
			source := &source{scheduler: &scheduler{karmada: store}, ctx: t.Context()}
			err := source.forEachCandidate(test.states, func(bound binding.Object) { visited = append(visited, requestOf(bound).String()) })
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(visited)
			if diff := cmp.Diff(test.want, visited); diff != "" {
				t.Errorf("bindings (-want +got):\n%s", diff)
			}
		})
	}
}
