package explain

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/api/crds"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// givenObjects are the objects of the files.
type givenObjects struct {
	templates []*unstructured.Unstructured
	// policies are the policies as in the files. readControlPlane prepares them, because that needs the stored policies.
	policies []policy.Object
	notes    []string
}

// readFiles reads the objects of the files. It sends only discovery requests.
func (o *simulateOptions) readFiles() (givenObjects, error) {
	var given givenObjects
	if !o.hasFiles() {
		return given, nil
	}
	namespace, _, err := o.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return given, err
	}
	infos, err := o.factory.NewBuilder().Unstructured().ContinueOnError().NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(false, &o.files).Flatten().Do().Infos()
	if err != nil {
		return given, fmt.Errorf("reading the files: %w", err)
	}
	mapper, err := o.factory.ToRESTMapper()
	if err != nil {
		return given, fmt.Errorf("reading the types of the control plane: %w", err)
	}
	overrides, namespaces := 0, 0
	for _, info := range infos {
		switch kind := info.Mapping.GroupVersionKind; {
		case kind.Group == policyv1alpha1.GroupName && (kind.Kind == "OverridePolicy" || kind.Kind == "ClusterOverridePolicy"):
			overrides++
		case kind.Group == "" && kind.Kind == "Namespace":
			namespaces++
		default:
			if err := given.add(mapper, info); err != nil {
				return given, err
			}
		}
	}
	if overrides > 0 {
		given.notes = append(given.notes, "override policies in the files are ignored: they change manifests, not clusters")
	}
	if namespaces > 0 {
		given.notes = append(given.notes, "Namespaces in the files are ignored: Karmada creates them in every cluster without a policy")
	}
	return given, nil
}

// add adds one object. It converts a template to the preferred version of its kind, which policies and bindings use.
func (g *givenObjects) add(mapper meta.RESTMapper, info *resource.Info) error {
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("reading %s: unexpected type %T", info.Source, info.Object)
	}
	var read policy.Object
	switch kind := info.Mapping.GroupVersionKind; {
	case kind.Group == policyv1alpha1.GroupName && kind.Kind == policyv1alpha1.ResourceKindPropagationPolicy:
		read = &policyv1alpha1.PropagationPolicy{}
	case kind.Group == policyv1alpha1.GroupName && kind.Kind == policyv1alpha1.ResourceKindClusterPropagationPolicy:
		read = &policyv1alpha1.ClusterPropagationPolicy{}
	default:
		preferred, err := mapper.RESTMapping(kind.GroupKind())
		if err != nil {
			return fmt.Errorf("reading the types of the control plane: %w", err)
		}
		template := object.DeepCopy()
		template.SetGroupVersionKind(preferred.GroupVersionKind)
		g.templates = append(g.templates, template)
		return nil
	}
	defaulted := object.DeepCopy()
	if err := setDefaults(defaulted.Object, info.Mapping.Resource.Resource); err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(defaulted.Object, read, true); err != nil {
		return fmt.Errorf("reading %s %s in %s: %w", object.GetKind(), object.GetName(), info.Source, err)
	}
	g.policies = append(g.policies, read)
	return nil
}

// isNamespaced reports whether the objects of a mapping have a namespace.
func isNamespaced(mapping *meta.RESTMapping) bool {
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// setDefaults sets the defaults of the policy's CustomResourceDefinition, as the API server does when it stores the policy.
func setDefaults(policy map[string]any, plural string) error {
	schema, err := schemaOf(plural)
	if err != nil {
		return err
	}
	setSchemaDefaults(policy, schema)
	return nil
}

// schemaOf returns the OpenAPI schema of the policies with the given plural.
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

// setSchemaDefaults sets the missing fields of value that have a default in the schema. It does not create the objects that
// contain them.
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
