package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// overridePaths refuses paths that are no JSON pointers in the fields that were
// accepted unseen: plaintext, and all of the deprecated overriders. A path that is
// stored already is warned about instead, so that the rest of its policy can be
// changed.
func (r *report) overridePaths(spec *policyv1alpha1.OverrideSpec, old runtime.Object) {
	stored := sets.New[string]()
	if of, ok := old.(interface {
		OverrideSpec() *policyv1alpha1.OverrideSpec
	}); ok {
		eachUncheckedPath(of.OverrideSpec(), func(_ *field.Path, pointer string) { stored.Insert(pointer) })
	}
	eachUncheckedPath(spec, func(path *field.Path, pointer string) {
		refused := len(r.errors)
		r.pointer(path, pointer)
		if len(r.errors) > refused && stored.Has(pointer) {
			r.errors = r.errors[:refused]
			r.warn(path, "fails for every object: %q is no JSON pointer; a JSON pointer begins with '/'", pointer)
		}
	})
}

func eachUncheckedPath(spec *policyv1alpha1.OverrideSpec, visit func(path *field.Path, pointer string)) {
	at := specPath().Child("overriders")
	eachPlaintext(at, &spec.Overriders, visit)
	for i := range spec.Overriders.ImageOverrider {
		if predicate := spec.Overriders.ImageOverrider[i].Predicate; predicate != nil {
			visit(at.Child("imageOverrider").Index(i).Child("predicate", "path"), predicate.Path)
		}
	}
	for i := range spec.Overriders.FieldOverrider {
		visit(at.Child("fieldOverrider").Index(i).Child("fieldPath"), spec.Overriders.FieldOverrider[i].FieldPath)
	}
	for i := range spec.OverrideRules {
		eachPlaintext(specPath().Child("overrideRules").Index(i).Child("overriders"), &spec.OverrideRules[i].Overriders, visit)
	}
}

func eachPlaintext(path *field.Path, overriders *policyv1alpha1.Overriders, visit func(path *field.Path, pointer string)) {
	for i := range overriders.Plaintext {
		visit(path.Child("plaintext").Index(i).Child("path"), overriders.Plaintext[i].Path)
	}
}
