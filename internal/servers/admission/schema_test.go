package admission

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/api/crds"
)

// definition validates objects by one version of a CRD, as an API server does.
type definition struct {
	structural *schema.Structural
	schema     schemavalidation.SchemaValidator
	rules      *cel.Validator
}

// newDefinition returns the definition of the stored version.
func newDefinition(t testing.TB, crd *apiextensions.CustomResourceDefinition) *definition {
	t.Helper()
	props := crd.Spec.Validation
	for _, version := range crd.Spec.Versions {
		if version.Storage && version.Schema != nil {
			props = version.Schema
		}
	}
	structural, err := schema.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := schemavalidation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return &definition{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

func definitions(t testing.TB) map[string]*apiextensions.CustomResourceDefinition {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string]*apiextensions.CustomResourceDefinition{}
	for _, crd := range all {
		versioned, internal := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
		if err := yaml.Unmarshal(crd.YAML, versioned); err != nil {
			t.Fatal(err)
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(versioned)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&versioned.Spec)
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(versioned, internal, nil); err != nil {
			t.Fatal(err)
		}
		internal.Status.StoredVersions = []string{versioned.Spec.Versions[len(versioned.Spec.Versions)-1].Name}
		byKind[internal.Spec.Names.Kind] = internal
	}
	return byKind
}

// validate returns the errors of the schema for a new or changed object.
func (d *definition) validate(t testing.TB, object, old map[string]any) field.ErrorList {
	t.Helper()
	errs := schemavalidation.ValidateCustomResource(nil, object, d.schema)
	if len(errs) > 0 {
		return errs
	}
	errs, _ = d.rules.Validate(t.Context(), nil, d.structural, object, oldValue(old), celconfig.RuntimeCELCostBudget)
	return errs
}

// oldValue returns nil if there is no old object, because a nil map would be an object without
// fields.
func oldValue(old map[string]any) any {
	if old == nil {
		return nil
	}
	return old
}

func TestDefinitionsAreValid(t *testing.T) {
	for kind, crd := range definitions(t) {
		t.Run(kind, func(t *testing.T) {
			if errs := validation.ValidateCustomResourceDefinition(t.Context(), crd); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}
