// Package openapi contains the OpenAPI definitions of the aggregated API groups, which kubectl explain and
// server-side apply use.
package openapi

import (
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"karmada.io/karmada/internal/extensionserver/openapi/generated"
)

// Model names of the core group.
const (
	requirementModel = "io.k8s.api.core.v1.NodeSelectorRequirement"
	taintModel       = "io.k8s.api.core.v1.Taint"
)

// timeModel is the model name of a metav1.Time.
const timeModel = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"

// modelPrefix is the prefix of the model names of all Karmada groups.
const modelPrefix = "io.karmada."

// ForGroup returns the function by which k8s.io/apiserver reads the definitions of an API group, such as
// search.karmada.io. It returns the definitions of the group and of the types that the group refers to.
func ForGroup(group string) common.GetOpenAPIDefinitions {
	name, _, _ := strings.Cut(group, ".")
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := generated.GetOpenAPIDefinitions(func(name string) spec.Ref { return ref(modelName(name)) })
		all[requirementModel], all[taintModel] = requirementDefinition(), taintDefinition(ref)
		used := map[string]common.OpenAPIDefinition{}
		for model := range all {
			if strings.HasPrefix(model, modelPrefix+name+".") || strings.HasPrefix(model, "io.k8s.apimachinery.") {
				addWithDependencies(used, all, model)
			}
		}
		return used
	}
}

// addWithDependencies adds a definition and the definitions that it refers to.
func addWithDependencies(used, all map[string]common.OpenAPIDefinition, model string) {
	if _, exists := used[model]; exists {
		return
	}
	definition := all[model]
	for i, dependency := range definition.Dependencies {
		definition.Dependencies[i] = modelName(dependency)
	}
	used[model] = definition
	for _, dependency := range definition.Dependencies {
		addWithDependencies(used, all, dependency)
	}
}

// modelName returns the model name for a type name of the generator, which writes the Go name for types
// outside of the generated packages. References escape the slashes of a Go name, and server-side apply
// does not resolve such references.
func modelName(name string) string {
	switch name {
	case "k8s.io/api/core/v1.NodeSelectorRequirement":
		return requirementModel
	case "k8s.io/api/core/v1.Taint":
		return taintModel
	}
	return name
}

func stringSchema(description string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Description: description, Type: []string{"string"}, Default: ""}}
}

// requirementDefinition returns the definition that a ResourceRegistry needs from the core group. It is
// handwritten, because the generator would write the whole core group, which is ten times the size of all
// other definitions.
func requirementDefinition() common.OpenAPIDefinition {
	item := stringSchema("")
	return common.OpenAPIDefinition{
		Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Description: "A requirement selects clusters by one field of their spec.",
			Type:        []string{"object"},
			Required:    []string{"key", "operator"},
			Properties: map[string]spec.Schema{
				"key":      stringSchema("The field: provider, region or zone."),
				"operator": stringSchema("In or NotIn."),
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

// taintDefinition returns the definition that a Cluster needs from the core group, see
// requirementDefinition.
func taintDefinition(ref common.ReferenceCallback) common.OpenAPIDefinition {
	value := stringSchema("The value of the taint.")
	value.Default = nil
	return common.OpenAPIDefinition{
		Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Description: "A taint excludes objects from a cluster that do not tolerate it.",
			Type:        []string{"object"},
			Required:    []string{"key", "effect"},
			Properties: map[string]spec.Schema{
				"key":    stringSchema("The key of the taint."),
				"value":  value,
				"effect": stringSchema("NoSchedule: no new objects are scheduled to the cluster. NoExecute: objects are also evicted."),
				"timeAdded": {SchemaProps: spec.SchemaProps{
					Description: "The time at which the taint was added. Set by the API server for NoExecute.",
					Ref:         ref(timeModel),
				}},
			},
		}},
		Dependencies: []string{timeModel},
	}
}
