package openapi

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestEveryReferenceHasADefinition(t *testing.T) {
	t.Parallel()
	referred := map[string]bool{}
	definitions := GetOpenAPIDefinitions(func(name string) spec.Ref {
		referred[name] = true
		return spec.MustCreateRef("#/definitions/" + name)
	})
	for name := range referred {
		if _, ok := definitions[name]; !ok {
			t.Errorf("%s is referred to but not defined", name)
		}
		if strings.Contains(name, "/") {
			t.Errorf("the reference to %s needs escapes, so server-side apply does not follow it", name)
		}
	}
	if !referred[taintModel] {
		t.Errorf("no definition refers to %s", taintModel)
	}
	if want := (corev1.Taint{}).OpenAPIModelName(); taintModel != want {
		t.Errorf("the model name of the taint is %s, want %s", taintModel, want)
	}
	for _, name := range []string{
		clusterv1alpha1.Cluster{}.OpenAPIModelName(),
		clusterv1alpha1.ClusterList{}.OpenAPIModelName(),
		clusterv1alpha1.ClusterProxyOptions{}.OpenAPIModelName(),
	} {
		if _, ok := definitions[name]; !ok {
			t.Errorf("%s is served but not defined", name)
		}
	}
}

func TestTaintDefinitionHasAllFields(t *testing.T) {
	t.Parallel()
	definition := taintDefinition(func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) })
	got := slices.Sorted(maps.Keys(definition.Schema.Properties))
	want := slices.Sorted(maps.Keys(corev1.Taint{}.SwaggerDoc()))
	want = slices.DeleteFunc(want, func(name string) bool { return name == "" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-type +definition):\n%s", diff)
	}
}

func TestGradesAreInt32(t *testing.T) {
	t.Parallel()
	definitions := GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) })
	modeling := definitions[clusterv1alpha1.AllocatableModeling{}.OpenAPIModelName()].Schema.Properties
	for _, name := range []string{"grade", "count"} {
		if got := modeling[name].Format; got != "int32" {
			t.Errorf("format of %s is %q, want int32", name, got)
		}
	}
}
