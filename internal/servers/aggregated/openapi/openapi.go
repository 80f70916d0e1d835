// Package openapi answers: how do the objects look that the aggregated API
// server serves? kubectl explain and server-side apply live on the answer. Every
// definition that another one refers to is here too.
package openapi

import (
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"karmada.io/karmada/internal/servers/aggregated/openapi/generated"
)

// GetOpenAPIDefinitions returns the definitions by model name, as
// k8s.io/apiserver wants them.
func GetOpenAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	definitions := generated.GetOpenAPIDefinitions(func(name string) spec.Ref { return ref(modelName(name)) })
	for _, definition := range definitions {
		for i, dependency := range definition.Dependencies {
			definition.Dependencies[i] = modelName(dependency)
		}
	}
	definitions[taint] = taintDefinition(ref)
	return definitions
}

const (
	taint     = "io.k8s.api.core.v1.Taint"
	timestamp = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
)

// modelName returns the model name for what the generator calls a type. For types
// outside of what it generates it writes the Go name, whose slashes are escaped in
// a reference; server-side apply does not find a type by such a reference.
func modelName(name string) string {
	if name == "k8s.io/api/core/v1.Taint" {
		return taint
	}
	return name
}

// taintDefinition is the one definition of the core group that a Cluster needs.
// It is written by hand because generating it takes along the whole group, ten
// times the size of everything else.
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
			Description: "A taint keeps objects away from a cluster that do not tolerate it.",
			Type:        []string{"object"},
			Required:    []string{"key", "effect"},
			Properties: map[string]spec.Schema{
				"key":    text("The key of the taint."),
				"value":  optional,
				"effect": text("NoSchedule lets nothing new in, NoExecute drives out what is there."),
				"timeAdded": {SchemaProps: spec.SchemaProps{
					Description: "When the taint was added. Set by the API server for NoExecute.",
					Ref:         ref(timestamp),
				}},
			},
		}},
		Dependencies: []string{timestamp},
	}
}
