// Package openapi answers: what is the OpenAPI schema of karmada-search? kubectl explain and
// server-side apply use this schema. The schema contains every definition that another definition
// refers to.
package openapi

import (
	"maps"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/search/openapi/generated"
)

// clusterModels is the prefix of the model names of cluster.karmada.io. The generator writes the
// whole group. A ResourceRegistry uses only one type of it.
const clusterModels = "io.karmada.cluster."

// requirementModel is the model name of a NodeSelectorRequirement.
const requirementModel = "io.k8s.api.core.v1.NodeSelectorRequirement"

// GetOpenAPIDefinitions returns the definitions by model name, as k8s.io/apiserver requires.
func GetOpenAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := generated.GetOpenAPIDefinitions(func(name string) spec.Ref { return ref(modelName(name)) })
	maps.DeleteFunc(all, func(name string, _ common.OpenAPIDefinition) bool {
		return strings.HasPrefix(name, clusterModels) && name != clusterv1alpha1.LocalSecretReference{}.OpenAPIModelName()
	})
	for _, definition := range all {
		for i, dependency := range definition.Dependencies {
			definition.Dependencies[i] = modelName(dependency)
		}
	}
	all[requirementModel] = requirementDefinition()
	return all
}

// modelName returns the model name for a type name of the generator. For types outside of the
// generated packages, the generator writes the Go name. References escape the slashes of a Go
// name, and server-side apply does not resolve such references.
func modelName(name string) string {
	if name == "k8s.io/api/core/v1.NodeSelectorRequirement" {
		return requirementModel
	}
	return name
}

// requirementDefinition returns the only definition of the core group that a ResourceRegistry
// needs. The definition is handwritten, because generating it would include the whole core group.
func requirementDefinition() common.OpenAPIDefinition {
	text := func(description string) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Description: description, Type: []string{"string"}, Default: ""}}
	}
	item := text("")
	return common.OpenAPIDefinition{
		Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Description: "A requirement selects clusters by one field of their spec.",
			Type:        []string{"object"},
			Required:    []string{"key", "operator"},
			Properties: map[string]spec.Schema{
				"key":      text("The field: provider, region or zone."),
				"operator": text("In or NotIn."),
				"values": {
					VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-list-type": "atomic"}},
					SchemaProps: spec.SchemaProps{
						Description: "The values of the field.", Type: []string{"array"},
						Items: &spec.SchemaOrArray{Schema: &item},
					},
				},
			},
		}},
	}
}
