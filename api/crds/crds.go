// Package crds answers: which CustomResourceDefinitions does a Karmada control
// plane need? It holds them as generated from the API types, byte for byte;
// whoever installs them adds the conversion stanza, which depends on where the
// webhook runs. The groups of aggregated API servers have none.
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

// Operator is the one group whose CRDs belong into the cluster that hosts
// control planes rather than into a control plane.
const Operator = "operator.karmada.io"

// CRD is a CustomResourceDefinition as generated.
type CRD struct {
	// Group is the API group, such as work.karmada.io.
	Group string
	// Plural is the plural resource name, such as works.
	Plural string
	// YAML is the whole definition.
	YAML []byte
}

// Name is the object's name, such as works.work.karmada.io.
func (c CRD) Name() string { return c.Plural + "." + c.Group }

// NeedsConversion says that the resource is served in several versions that
// only the conversion webhook translates: see ConversionPatch.
func (c CRD) NeedsConversion() bool {
	return c.Group == "work.karmada.io" && c.Plural != "works"
}

// All returns the definitions of every group in order of their names. The slice
// and its bytes are the caller's.
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

// ConversionPath is the path of the webhook that translates between versions.
const ConversionPath = "/convert"

// ConversionPatch is the JSON merge patch (RFC 7396) that sends the versions of
// a definition that NeedsConversion through the webhook. url is the whole URL,
// ConversionPath included, and caBundle the PEM certificates that the webhook's
// own is checked with.
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
		return nil, fmt.Errorf("encoding conversion stanza: %w", err)
	}
	return patch, nil
}
