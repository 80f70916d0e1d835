package extensionserver

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

func ref(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }

func TestDefinitionsOfAGroup(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		group             string
		defined, excluded []string
	}{
		"Clusters": {
			group: clusterv1alpha1.GroupName,
			defined: []string{
				clusterv1alpha1.Cluster{}.OpenAPIModelName(), clusterv1alpha1.ClusterList{}.OpenAPIModelName(),
				clusterv1alpha1.ClusterProxyOptions{}.OpenAPIModelName(), taintModel,
			},
			excluded: []string{searchv1alpha1.ResourceRegistry{}.OpenAPIModelName(), requirementModel},
		},
		"search": {
			group: searchv1alpha1.GroupName,
			defined: []string{
				searchv1alpha1.ResourceRegistry{}.OpenAPIModelName(), searchv1alpha1.ResourceRegistryList{}.OpenAPIModelName(),
				searchv1alpha1.Search{}.OpenAPIModelName(), searchv1alpha1.Proxying{}.OpenAPIModelName(),
				clusterv1alpha1.LocalSecretReference{}.OpenAPIModelName(), requirementModel,
			},
			excluded: []string{clusterv1alpha1.Cluster{}.OpenAPIModelName(), taintModel},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			definitions := openAPIDefinitions(test.group)(ref)
			for owner, definition := range definitions {
				for _, dependency := range definition.Dependencies {
					if _, ok := definitions[dependency]; !ok {
						t.Errorf("%s refers to %s, which is not defined", owner, dependency)
					}
					if strings.Contains(dependency, "/") {
						t.Errorf("the reference to %s needs escapes, so server-side apply does not follow it", dependency)
					}
				}
			}
			for _, model := range test.defined {
				if definitions[model].Schema.Description == "" && len(definitions[model].Schema.Type) == 0 {
					t.Errorf("%s is not defined", model)
				}
			}
			for _, model := range test.excluded {
				if _, ok := definitions[model]; ok {
					t.Errorf("%s is defined, but does not belong to the group", model)
				}
			}
		})
	}
}

func TestHandwrittenDefinitionsHaveAllFields(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		definition        spec.Schema
		model, modelOfAPI string
		doc               map[string]string
	}{
		"NodeSelectorRequirement": {
			definition: requirementDefinition().Schema, model: requirementModel,
			modelOfAPI: corev1.NodeSelectorRequirement{}.OpenAPIModelName(), doc: corev1.NodeSelectorRequirement{}.SwaggerDoc(),
		},
		"Taint": {
			definition: taintDefinition(ref).Schema, model: taintModel,
			modelOfAPI: corev1.Taint{}.OpenAPIModelName(), doc: corev1.Taint{}.SwaggerDoc(),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := slices.DeleteFunc(slices.Sorted(maps.Keys(test.doc)), func(name string) bool { return name == "" })
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(test.definition.Properties))); diff != "" {
				t.Errorf("fields (-type +definition):\n%s", diff)
			}
			if test.model != test.modelOfAPI {
				t.Errorf("the model name is %s, want %s", test.model, test.modelOfAPI)
			}
		})
	}
}

func TestGradesAreInt32(t *testing.T) {
	t.Parallel()
	definitions := openAPIDefinitions(clusterv1alpha1.GroupName)(ref)
	modeling := definitions[clusterv1alpha1.AllocatableModeling{}.OpenAPIModelName()].Schema.Properties
	for _, name := range []string{"grade", "count"} {
		if got := modeling[name].Format; got != "int32" {
			t.Errorf("format of %s is %q, want int32", name, got)
		}
	}
}
