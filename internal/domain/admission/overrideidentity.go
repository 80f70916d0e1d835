package admission

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// overrideIdentity refuses entries whose path alone shows that they make
// another object of the manifest. Which value they set may be unknown; what they
// leave is checked when it is made. An entry that is stored already is warned
// about instead, so that the rest of its policy can be changed. With allowed, the
// whole manifest is refused only.
func (r *report) overrideIdentity(spec *policyv1alpha1.OverrideSpec, old runtime.Object, namespace string, allowed bool) {
	stored := sets.New[string]()
	if of, ok := old.(interface {
		OverrideSpec() *policyv1alpha1.OverrideSpec
	}); ok {
		eachIdentityPath(of.OverrideSpec(), namespace, func(_ *field.Path, pointer, _ string) { stored.Insert(pointer) })
	}
	eachIdentityPath(spec, namespace, func(path *field.Path, pointer, what string) {
		if allowed && pointer != "" {
			return
		}
		text := fmt.Sprintf("an override must not change %s; name the fields that differ, such as /spec/replicas", what)
		if stored.Has(pointer) {
			r.warn(path, "fails for every object that it changes: %s", text)
			return
		}
		r.add(field.Invalid(path, pointer, text))
	})
}

// eachIdentityPath visits the paths that lead to the identity of an object, with what
// stands there.
func eachIdentityPath(spec *policyv1alpha1.OverrideSpec, namespace string, visit func(path *field.Path, pointer, what string)) {
	each := func(at *field.Path, o *policyv1alpha1.Overriders) {
		for i := range o.Plaintext {
			if what := identityChange(&o.Plaintext[i], namespace); what != "" {
				visit(at.Child("plaintext").Index(i).Child("path"), o.Plaintext[i].Path, what)
			}
		}
		for i := range o.ImageOverrider {
			if predicate := o.ImageOverrider[i].Predicate; predicate != nil && identityField(predicate.Path) != "" {
				visit(at.Child("imageOverrider").Index(i).Child("predicate", "path"), predicate.Path, identityField(predicate.Path))
			}
		}
		for i := range o.FieldOverrider {
			if what := identityField(o.FieldOverrider[i].FieldPath); what != "" {
				visit(at.Child("fieldOverrider").Index(i).Child("fieldPath"), o.FieldOverrider[i].FieldPath, what)
			}
		}
	}
	each(specPath().Child("overriders"), &spec.Overriders)
	for i := range spec.OverrideRules {
		each(specPath().Child("overrideRules").Index(i).Child("overriders"), &spec.OverrideRules[i].Overriders)
	}
}

// identityField says what of an object's identity stands at a JSON pointer, empty for
// nothing. /apiVersion is no such field: the version may change within the group.
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

// identityChange returns what of an object's identity the entry changes for certain,
// empty for nothing. The namespace is that of the policy.
func identityChange(entry *policyv1alpha1.PlaintextOverrider, namespace string) string {
	remove := entry.Operator == policyv1alpha1.OverriderOpRemove
	switch entry.Path {
	case "":
		return "the whole manifest"
	case "/apiVersion":
		if remove {
			return "the API group of the object"
		}
	case "/metadata":
		return metadataChange(entry, namespace)
	}
	return identityField(entry.Path)
}

// metadataChange is about an entry that replaces all metadata: with them it must
// write the name, and the namespace of the policy.
func metadataChange(entry *policyv1alpha1.PlaintextOverrider, namespace string) string {
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
