package extensionserver

import (
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
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

// openAPIDefinitions returns a function that returns the OpenAPI definitions of the given API group,
// such as search.karmada.io, and of all types to which the group refers. kubectl explain and
// server-side apply use these definitions.
func openAPIDefinitions(group string) common.GetOpenAPIDefinitions {
	name, _, _ := strings.Cut(group, ".")
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := GetOpenAPIDefinitions(func(name string) spec.Ref { return ref(modelName(name)) })
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

// addWithDependencies adds to used the definition of model and all definitions to which it refers.
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

// modelName returns the model name for a name in a generated definition. For types whose definitions
// are not generated, the generator writes the Go name. References escape the slashes in a Go name, and
// server-side apply cannot resolve such references.
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

// requirementDefinition returns the definition of the core type NodeSelectorRequirement, to which a
// ResourceRegistry refers. It is handwritten, because the generator would write the whole core group,
// which is ten times as large as all other definitions together.
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

// taintDefinition returns the definition of the core type Taint, to which a Cluster refers. It is
// handwritten for the same reason as requirementDefinition.
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
