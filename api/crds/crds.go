// Package crds holds the CustomResourceDefinitions of a control plane, which are generated from the
// API types. The installer adds
// the conversion webhook, whose address depends on the installation. The groups of aggregated
// API servers have no definitions.
package crds

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed bases/*.yaml
var bases embed.FS

// Operator is the only group whose CRDs are installed in the host cluster of control planes
// instead of a control plane.
const Operator = "operator.karmada.io"

// CRD is a generated CustomResourceDefinition.
type CRD struct {
	// Group is the API group, such as work.karmada.io.
	Group string
	// Plural is the plural resource name, such as works.
	Plural string
	// YAML is the complete definition.
	YAML []byte
}

// Name returns the name of the object, such as works.work.karmada.io.
func (c CRD) Name() string { return c.Plural + "." + c.Group }

// NeedsConversion reports whether the resource has several versions that the conversion
// webhook converts: see ConversionPatch.
func (c CRD) NeedsConversion() bool {
	return c.Group == "work.karmada.io" && c.Plural != "works"
}

// All returns the definitions of all groups sorted by name. The caller may modify the
// result.
func All() ([]CRD, error) {
	files, err := bases.ReadDir("bases")
	if err != nil {
		return nil, fmt.Errorf("listing embedded CRDs: %w", err)
	}
	all := make([]CRD, 0, len(files))
	for _, file := range files {
		data, err := bases.ReadFile("bases/" + file.Name())
		if err != nil {
			return nil, fmt.Errorf("reading embedded CRD: %w", err)
		}
		group, plural, _ := strings.Cut(strings.TrimSuffix(file.Name(), ".yaml"), "_")
		all = append(all, CRD{Group: group, Plural: plural, YAML: data})
	}
	slices.SortFunc(all, func(a, b CRD) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// ConversionPath is the path of the conversion webhook.
const ConversionPath = "/convert"

// ConversionPatch returns the JSON merge patch (RFC 7396) that sets the conversion webhook
// of a definition for which NeedsConversion is true. url is the complete URL including
// ConversionPath. caBundle are the PEM certificates that verify the webhook.
func ConversionPatch(url string, caBundle []byte) ([]byte, error) {
	type object = map[string]any
	patch, err := json.Marshal(object{"spec": object{"conversion": object{
		"strategy": "Webhook",
		"webhook": object{
			"conversionReviewVersions": []string{"v1"},
			"clientConfig":             object{"url": url, "caBundle": caBundle},
		},
	}}})
	if err != nil {
		return nil, fmt.Errorf("encoding the conversion patch: %w", err)
	}
	return patch, nil
}
