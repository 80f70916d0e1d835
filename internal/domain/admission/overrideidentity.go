package admission

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// validateOverrideIdentity rejects entries whose path shows that they change the manifest's identity.
// The results of other entries are checked when overrides are applied. An entry that is already stored
// causes only a warning, so that the rest of the policy can be changed. If allowed is true, only
// entries that replace the whole manifest are rejected.
func (r *report) validateOverrideIdentity(spec *policyv1alpha1.OverrideSpec, old runtime.Object, namespace string, allowed bool) {
	stored := sets.New[string]()
	if of, ok := old.(interface {
		OverrideSpec() *policyv1alpha1.OverrideSpec
	}); ok {
		forEachIdentityPath(of.OverrideSpec(), namespace, func(_ *field.Path, pointer, _ string) { stored.Insert(pointer) })
	}
	forEachIdentityPath(spec, namespace, func(path *field.Path, pointer, part string) {
		if allowed && pointer != "" {
			return
		}
		text := fmt.Sprintf("an override must not change %s; use paths of single fields, such as /spec/replicas", part)
		if stored.Has(pointer) {
			r.addWarning(path, "fails for every object that it changes: %s", text)
			return
		}
		r.addErrors(field.Invalid(path, pointer, text))
	})
}

// forEachIdentityPath calls visit for every overrider path that changes an object's identity, with a
// description of the changed part.
func forEachIdentityPath(spec *policyv1alpha1.OverrideSpec, namespace string, visit func(path *field.Path, pointer, part string)) {
	visitOverriders := func(itemPath *field.Path, o *policyv1alpha1.Overriders) {
		for i := range o.Plaintext {
			if part := changedIdentity(&o.Plaintext[i], namespace); part != "" {
				visit(itemPath.Child("plaintext").Index(i).Child("path"), o.Plaintext[i].Path, part)
			}
		}
		for i := range o.ImageOverrider {
			if predicate := o.ImageOverrider[i].Predicate; predicate != nil && identityField(predicate.Path) != "" {
				visit(itemPath.Child("imageOverrider").Index(i).Child("predicate", "path"), predicate.Path, identityField(predicate.Path))
			}
		}
		for i := range o.FieldOverrider {
			if part := identityField(o.FieldOverrider[i].FieldPath); part != "" {
				visit(itemPath.Child("fieldOverrider").Index(i).Child("fieldPath"), o.FieldOverrider[i].FieldPath, part)
			}
		}
	}
	visitOverriders(specPath().Child("overriders"), &spec.Overriders)
	for i := range spec.OverrideRules {
		visitOverriders(specPath().Child("overrideRules").Index(i).Child("overriders"), &spec.OverrideRules[i].Overriders)
	}
}

// identityField describes the part of the identity to which a JSON pointer leads. It returns an empty
// string if the pointer leads to another field. /apiVersion counts as another field, because the
// version may change within the group.
func identityField(pointer string) string {
	switch pointer {
	case "/kind":
		return "the kind of the object"
	case "/metadata/name":
		return "the name of the object"
	case "/metadata/namespace":
		return "the namespace of the object"
	}
	return ""
}

// changedIdentity describes the part of the identity that the entry certainly changes. It returns an
// empty string if there is no such part. namespace is the policy's namespace.
func changedIdentity(entry *policyv1alpha1.PlaintextOverrider, namespace string) string {
	remove := entry.Operator == policyv1alpha1.OverriderOpRemove
	switch entry.Path {
	case "":
		return "the whole manifest"
	case "/apiVersion":
		if remove {
			return "the API group of the object"
		}
	case "/metadata":
		return changedMetadata(entry, namespace)
	}
	return identityField(entry.Path)
}

// changedMetadata describes the part of the identity that an entry changes by replacing all metadata.
// The new metadata must contain a name and the policy's namespace.
func changedMetadata(entry *policyv1alpha1.PlaintextOverrider, namespace string) string {
	var metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	}
	if entry.Operator == policyv1alpha1.OverriderOpRemove || json.Unmarshal(entry.Value.Raw, &metadata) != nil || metadata.Name == "" {
		return identityField("/metadata/name")
	}
	if namespace != "" && metadata.Namespace != namespace {
		return identityField("/metadata/namespace")
	}
	return ""
}
