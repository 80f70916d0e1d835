package patch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestApply(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := workv1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Annotations: map[string]string{"applied": "old", "owner": "shop"},
	}}
	bound.Spec.Replicas, bound.Status.SchedulerObservedGeneration = 4, 1
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bound).WithStatusSubresource(bound).Build()
	read := func() *workv1alpha2.ResourceBinding {
		stored := &workv1alpha2.ResourceBinding{}
		if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(bound), stored); err != nil {
			t.Fatal(err)
		}
		return stored
	}
	first := read()
	cached := first.DeepCopy()
	apply := func(object client.Object, changes Changes) bool {
		changed, err := Apply(t.Context(), karmada, object, changes)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}

	if apply(first, Changes{}) || first.ResourceVersion != cached.ResourceVersion {
		t.Error("a write without a change")
	}
	shared := *cached
	targets := []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 4}}
	if !apply(&shared, Changes{Annotations: map[string]any{"applied": "new", "owner": nil}, Spec: map[string]any{"clusters": targets}}) {
		t.Error("no write of a change")
	}
	if !apply(&shared, Changes{Status: map[string]any{"schedulerObservedGeneration": 2}}) {
		t.Error("no write of a change of the status")
	}
	stored := read()
	if diff := cmp.Diff(map[string]string{"applied": "new"}, stored.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if stored.Status.SchedulerObservedGeneration != 2 || stored.Spec.Replicas != 4 || len(stored.Spec.Clusters) != 1 {
		t.Errorf("stored %+v", stored)
	}
	if shared.ResourceVersion != stored.ResourceVersion {
		t.Errorf("version %s, stored %s", shared.ResourceVersion, stored.ResourceVersion)
	}
	// The response must not be decoded into the maps and lists that the object shares with a cache.
	if diff := cmp.Diff(first, cached); diff != "" {
		t.Errorf("the cached object changed (-before +after):\n%s", diff)
	}
	if _, err := Apply(t.Context(), karmada, cached, Changes{Spec: map[string]any{"replicas": 5}}); !apierrors.IsConflict(err) {
		t.Errorf("a write of an older state returns %v, want a conflict", err)
	}
}
