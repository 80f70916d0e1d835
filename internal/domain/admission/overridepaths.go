package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/override"
)

// validateOverridePaths rejects invalid JSON pointers in the fields that upstream does not validate:
// plaintext, and all deprecated overriders. A path that is already stored causes only a warning, so
// that the rest of the policy can be changed.
func (r *report) validateOverridePaths(spec *policyv1alpha1.OverrideSpec, old runtime.Object) {
	stored := sets.New[string]()
	if of, ok := old.(interface {
		OverrideSpec() *policyv1alpha1.OverrideSpec
	}); ok {
		forEachUncheckedPath(of.OverrideSpec(), func(_ *field.Path, pointer string) { stored.Insert(pointer) })
	}
	forEachUncheckedPath(spec, func(path *field.Path, pointer string) {
		errorCount := len(r.errors)
		r.validatePointer(path, pointer)
		if len(r.errors) > errorCount && stored.Has(pointer) {
			r.errors = r.errors[:errorCount]
			r.addWarning(path, "fails for every object: %q is not a JSON pointer; a JSON pointer begins with '/'", pointer)
		}
	})
}

func forEachUncheckedPath(spec *policyv1alpha1.OverrideSpec, visit func(path *field.Path, pointer string)) {
	itemPath := specPath().Child("overriders")
	forEachPlaintextPath(itemPath, &spec.Overriders, visit)
	for i := range spec.Overriders.ImageOverrider {
		if predicate := spec.Overriders.ImageOverrider[i].Predicate; predicate != nil {
			visit(itemPath.Child("imageOverrider").Index(i).Child("predicate", "path"), predicate.Path)
		}
	}
	for i := range spec.Overriders.FieldOverrider {
		visit(itemPath.Child("fieldOverrider").Index(i).Child("fieldPath"), spec.Overriders.FieldOverrider[i].FieldPath)
	}
	for i := range spec.OverrideRules {
		forEachPlaintextPath(specPath().Child("overrideRules").Index(i).Child("overriders"), &spec.OverrideRules[i].Overriders, visit)
	}
}

func forEachPlaintextPath(path *field.Path, overriders *policyv1alpha1.Overriders, visit func(path *field.Path, pointer string)) {
	for i := range overriders.Plaintext {
		visit(path.Child("plaintext").Index(i).Child("path"), overriders.Plaintext[i].Path)
	}
}

// validateImageOverriders rejects entries that result in an invalid image reference for every image. An
// entry that is already stored causes only a warning, so that the rest of the policy can be changed.
func (r *report) validateImageOverriders(spec *policyv1alpha1.OverrideSpec, old runtime.Object) {
	stored := sets.New[policyv1alpha1.ImageOverrider]()
	if of, ok := old.(interface {
		OverrideSpec() *policyv1alpha1.OverrideSpec
	}); ok {
		forEachImageOverrider(of.OverrideSpec(), func(_ *field.Path, entry policyv1alpha1.ImageOverrider) { stored.Insert(entry) })
	}
	forEachImageOverrider(spec, func(path *field.Path, entry policyv1alpha1.ImageOverrider) {
		err := override.ValidateImageOverrider(entry)
		switch {
		case err == nil:
		case stored.Has(entry):
			r.addWarning(path.Child("value"), "has no effect: %v", err)
		default:
			r.addErrors(field.Invalid(path.Child("value"), entry.Value, err.Error()))
		}
	})
}

// forEachImageOverrider visits the spec's image overriders, without their predicates.
func forEachImageOverrider(spec *policyv1alpha1.OverrideSpec, visit func(path *field.Path, entry policyv1alpha1.ImageOverrider)) {
	visitAll := func(path *field.Path, overriders *policyv1alpha1.Overriders) {
		for i, entry := range overriders.ImageOverrider {
			entry.Predicate = nil
			visit(path.Child("imageOverrider").Index(i), entry)
		}
	}
	visitAll(specPath().Child("overriders"), &spec.Overriders)
	for i := range spec.OverrideRules {
		visitAll(specPath().Child("overrideRules").Index(i).Child("overriders"), &spec.OverrideRules[i].Overriders)
	}
}
