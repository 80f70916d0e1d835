package simulate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// givenObjects are the objects of the files.
type givenObjects struct {
	templates []*unstructured.Unstructured
	// policies are as in the files. The reader prepares them when it knows the stored policies.
	policies []policy.Object
	notes    []string
}

// readFiles reads the objects of the files. It sends only requests for the types that the control
// plane serves.
func (o *options) readFiles() (givenObjects, error) {
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

// add adds one object. A template gets the version that the control plane prefers, because policies
// select and bindings name only this version.
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
