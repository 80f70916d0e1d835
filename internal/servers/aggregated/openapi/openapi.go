// Package openapi answers: what is the OpenAPI schema of the aggregated API server? kubectl
// explain and server-side apply use this schema. The schema contains every definition that another
// definition refers to.
package openapi

import (
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"karmada.io/karmada/internal/servers/aggregated/openapi/generated"
)

// GetOpenAPIDefinitions returns the definitions by model name, as k8s.io/apiserver requires.
func GetOpenAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	definitions := generated.GetOpenAPIDefinitions(func(name string) spec.Ref { return ref(modelName(name)) })
	for _, definition := range definitions {
		for i, dependency := range definition.Dependencies {
			definition.Dependencies[i] = modelName(dependency)
		}
	}
	definitions[taintModel] = taintDefinition(ref)
	return definitions
}

const (
	taintModel = "io.k8s.api.core.v1.Taint"
	timeModel  = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
)

// modelName returns the model name for a type name of the generator. For types outside of the
// generated packages, the generator writes the Go name. References escape the slashes of a Go
// name, and server-side apply does not resolve such references.
func modelName(name string) string {
	if name == "k8s.io/api/core/v1.Taint" {
		return taintModel
	}
	return name
}

// taintDefinition returns the only definition of the core group that a Cluster needs. The
// definition is handwritten, because generating it would include the whole core group, which is
// ten times the size of all other definitions.
func taintDefinition(ref common.ReferenceCallback) common.OpenAPIDefinition {
	text := func(description string) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{
			Description: description, Type: []string{"string"}, Default: "",
		}}
	}
	optional := text("The value of the taint.")
	optional.Default = nil
	return common.OpenAPIDefinition{
		Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Description: "A taint excludes objects from a cluster that do not tolerate it.",
			Type:        []string{"object"},
			Required:    []string{"key", "effect"},
			Properties: map[string]spec.Schema{
				"key":    text("The key of the taint."),
				"value":  optional,
				"effect": text("NoSchedule: no new objects are scheduled to the cluster. NoExecute: objects are also evicted."),
				"timeAdded": {SchemaProps: spec.SchemaProps{
					Description: "The time at which the taint was added. Set by the API server for NoExecute.",
					Ref:         ref(timeModel),
				}},
			},
		}},
		Dependencies: []string{timeModel},
	}
}
