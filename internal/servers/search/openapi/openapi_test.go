package openapi

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

func TestEveryReferenceHasADefinition(t *testing.T) {
	t.Parallel()
	referred := map[string]bool{}
	definitions := GetOpenAPIDefinitions(func(name string) spec.Ref {
		referred[name] = true
		return spec.MustCreateRef("#/definitions/" + name)
	})
	// The generated function asks for references of removed definitions too, so the dependencies of
	// the remaining definitions decide.
	for owner, definition := range definitions {
		for _, name := range definition.Dependencies {
			if _, ok := definitions[name]; !ok {
				t.Errorf("%s refers to %s, which is not defined", owner, name)
			}
			if strings.Contains(name, "/") {
				t.Errorf("the reference to %s needs escapes, so server-side apply does not follow it", name)
			}
		}
	}
	if !referred[requirementModel] {
		t.Errorf("no definition refers to %s", requirementModel)
	}
	if want := (corev1.NodeSelectorRequirement{}).OpenAPIModelName(); requirementModel != want {
		t.Errorf("the model name of the requirement is %s, want %s", requirementModel, want)
	}
	for _, name := range []string{
		searchv1alpha1.ResourceRegistry{}.OpenAPIModelName(),
		searchv1alpha1.ResourceRegistryList{}.OpenAPIModelName(),
		searchv1alpha1.Search{}.OpenAPIModelName(),
		searchv1alpha1.Proxying{}.OpenAPIModelName(),
	} {
		if _, ok := definitions[name]; !ok {
			t.Errorf("%s is served but not defined", name)
		}
	}
}

func TestRequirementDefinitionHasAllFields(t *testing.T) {
	t.Parallel()
	got := slices.Sorted(maps.Keys(requirementDefinition().Schema.Properties))
	want := slices.Sorted(maps.Keys(corev1.NodeSelectorRequirement{}.SwaggerDoc()))
	want = slices.DeleteFunc(want, func(name string) bool { return name == "" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-type +definition):\n%s", diff)
	}
}
