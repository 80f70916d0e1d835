package search

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/admission"
)

func newRegistry(kinds ...string) *searchv1alpha1.ResourceRegistry {
	registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "r", Generation: 3}}
	for _, kind := range kinds {
		registry.Spec.ResourceSelectors = append(registry.Spec.ResourceSelectors, searchv1alpha1.ResourceSelector{APIVersion: "v1", Kind: kind})
	}
	registry.Status.Conditions = []metav1.Condition{{Type: "Stored"}}
	return registry
}

func TestAWriteOfTheSpecKeepsTheStatus(t *testing.T) {
	t.Parallel()
	writes := newRegistryStrategy(runtime.NewScheme(), admission.Options{})
	created := newRegistry("Pod")
	writes.PrepareForCreate(t.Context(), created)
	if created.Generation != 1 || len(created.Status.Conditions) > 0 {
		t.Errorf("a new registry has generation %d and status %v", created.Generation, created.Status)
	}
	stored, updated := newRegistry("Pod"), newRegistry("Pod", "Node")
	updated.Status, updated.Generation = searchv1alpha1.ResourceRegistryStatus{}, 9
	writes.PrepareForUpdate(t.Context(), updated, stored)
	if updated.Generation != 4 {
		t.Errorf("the generation is %d, want 4", updated.Generation)
	}
	if diff := cmp.Diff(stored.Status, updated.Status); diff != "" {
		t.Errorf("status (-stored +updated):\n%s", diff)
	}
}

func TestAWriteOfTheStatusKeepsTheSpec(t *testing.T) {
	t.Parallel()
	writes := registryStatusStrategy{newRegistryStrategy(runtime.NewScheme(), admission.Options{})}
	stored, updated := newRegistry("Pod"), newRegistry("Node")
	updated.Labels, updated.Status.Conditions[0].Type = map[string]string{"a": "b"}, "Changed"
	writes.PrepareForUpdate(t.Context(), updated, stored)
	want := stored.DeepCopy()
	want.Status.Conditions[0].Type = "Changed"
	if diff := cmp.Diff(want, updated); diff != "" {
		t.Errorf("registry (-want +got):\n%s", diff)
	}
}

func TestAnUpdateWarnsOnlyAboutItsOwnMistakes(t *testing.T) {
	t.Parallel()
	writes := newRegistryStrategy(runtime.NewScheme(), admission.Options{})
	stored, updated := newRegistry("Event"), newRegistry("Event", "Secret")
	if got := len(writes.WarningsOnCreate(t.Context(), stored)); got != 1 {
		t.Fatalf("%d warnings on creation, want 1", got)
	}
	warnings := writes.WarningsOnUpdate(t.Context(), updated, stored)
	if len(warnings) != 1 {
		t.Errorf("warnings %q, want one about the Secret", warnings)
	}
	if warnings := writes.WarningsOnUpdate(t.Context(), stored, stored); len(warnings) > 0 {
		t.Errorf("an update without a change has the warnings %q", warnings)
	}
}
