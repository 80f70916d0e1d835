package work

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestWithoutBinding(t *testing.T) {
	from := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: "shop-namespace", Labels: map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "crb-id"},
	}}
	from.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	stored, err := Render(inputForFirstTarget(parseObject(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`), from))
	if err != nil {
		t.Fatal(err)
	}
	stored.Annotations["note"], stored.Labels["team"] = "hi", "a"
	before := stored.DeepCopy()
	if !HasBinding(stored) {
		t.Fatal("a Work of a binding has no binding")
	}
	got := WithoutBinding(stored)
	if HasBinding(got) {
		t.Error("the Work still has a binding")
	}
	if diff := cmp.Diff(map[string]string{"work.karmada.io/permanent-id": "work-id", "team": "a"}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "hi"}, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(stored.Spec.Workload, got.Spec.Workload); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if got.Spec.SuspendDispatching != nil || got.Spec.PreserveResourcesOnDeletion != nil {
		t.Error("spec fields of the binding are left")
	}
	if diff := cmp.Diff(before, stored); diff != "" {
		t.Errorf("the stored Work was changed: %s", diff)
	}
}

func TestNamespaceOwner(t *testing.T) {
	owned := func(apiVersion, kind string, controller bool) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: "shop", UID: "1", Controller: &controller},
		}}}
	}
	tests := map[string]struct {
		of   *workv1alpha1.Work
		want bool
	}{
		"the Namespace that controls it":    {owned("v1", "Namespace", true), true},
		"a Namespace that does not control": {owned("v1", "Namespace", false), false},
		"a Cluster":                         {owned("cluster.karmada.io/v1alpha1", "Cluster", true), false},
		"a Namespace of another group":      {owned("example.io/v1", "Namespace", true), false},
		"no owner":                          {&workv1alpha1.Work{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NamespaceOwner(tc.of); (got != nil) != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
