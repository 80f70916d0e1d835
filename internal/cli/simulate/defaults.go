package simulate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/api/crds"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// setDefaults sets the defaults of the CustomResourceDefinition in a policy from a file, as the control
// plane does when it stores the policy.
func setDefaults(policy map[string]any, plural string) error {
	schema, err := schemaOf(plural)
	if err != nil {
		return err
	}
	setSchemaDefaults(policy, schema)
	return nil
}

// schemaOf returns the schema of a kind of policies.
func schemaOf(plural string) (map[string]any, error) {
	all, err := crds.All()
	if err != nil {
		return nil, err
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	for _, crd := range all {
		if crd.Group != policyv1alpha1.GroupName || crd.Plural != plural {
			continue
		}
		if err := yaml.Unmarshal(crd.YAML, &definition); err != nil {
			return nil, fmt.Errorf("reading the definition of %s: %w", crd.Name(), err)
		}
		return definition.Spec.Versions[0].Schema.OpenAPIV3Schema, nil
	}
	return nil, fmt.Errorf("reading the definition of %s: there is none", plural)
}

// setSchemaDefaults sets the missing fields of a value that have a default in the schema. A field is
// set only if the object that contains it exists.
func setSchemaDefaults(value any, schema map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, each := range properties {
			property, _ := each.(map[string]any)
			if fallback, hasDefault := property["default"]; hasDefault && value[name] == nil {
				value[name] = runtime.DeepCopyJSONValue(fallback)
			}
			setSchemaDefaults(value[name], property)
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, each := range value {
			setSchemaDefaults(each, items)
		}
	}
}
