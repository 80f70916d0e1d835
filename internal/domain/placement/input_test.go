package placement

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

func TestInputAvoidsClustersWhereTheApplicationFailed(t *testing.T) {
	bound := scheduledBinding(t)
	bound.Spec.Resource.ResourceVersion = "7"
	bound.Annotations[workv1alpha2.FailedInAnnotation] = `{"template": "7", "clusters": {"a": "2024-05-01T11:59:00Z"}}`
	if in := NewInput(bound, noon); in.AvoidClusters.Len() != 0 {
		t.Errorf("without application failover it avoids %v", in.AvoidClusters)
	}
	bound.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	in := NewInput(bound, noon)
	if !in.AvoidClusters.Equal(sets.New("a")) || in.AvoidStrictly || in.AppliedPlacement == "" || !in.Now.Equal(noon) {
		t.Errorf("got %+v", in)
	}
}

func TestPeersOf(t *testing.T) {
	member := func(name string, clusters ...string) binding.Object {
		bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		bound.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=shop", AntiAffinityGroup: "tier=web"}
		for _, cluster := range clusters {
			bound.Spec.Clusters = append(bound.Spec.Clusters, target(cluster, 1))
		}
		return bound
	}
	of := member("web", "a")
	byKey := map[string][]binding.Object{
		"affinity/app=shop":      {of, member("db", "a", "b"), member("new")},
		"anti-affinity/tier=web": {of, member("shop", "c")},
	}
	got, err := PeersOf(of, func(key string) ([]binding.Object, error) { return byKey[key], nil })
	want := Peers{Affinity: []sets.Set[string]{sets.New("a", "b")}, AntiAffinity: []sets.Set[string]{sets.New("c")}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("peers (-want +got):\n%s, error %v", diff, err)
	}
	if _, err := PeersOf(of, func(string) ([]binding.Object, error) { return nil, errors.New("down") }); err == nil {
		t.Error("an error of the list is lost")
	}
	if keys := WorkloadGroupKeys(&workv1alpha2.ClusterResourceBinding{Spec: *of.BindingSpec()}); keys != nil {
		t.Errorf("a ClusterResourceBinding has groups %v", keys)
	}
}
