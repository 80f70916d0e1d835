package admission

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func (r *report) validateBinding(binding *workv1alpha2.ResourceBinding, multiplePodTemplates bool) {
	r.validateDependencies(binding.Annotations)
	if multiplePodTemplates {
		r.validateComponents(binding.Spec.Components)
	}
}

func (r *report) validateDependencies(annotations map[string]string) {
	value, ok := annotations[workv1alpha2.DependenciesAnnotation]
	if !ok {
		return
	}
	var references []configv1alpha1.DependentObjectReference
	if err := json.Unmarshal([]byte(value), &references); err != nil {
		r.addErrors(field.Invalid(field.NewPath("metadata", "annotations").Key(workv1alpha2.DependenciesAnnotation), value,
			"must be a JSON array of references to objects: "+err.Error()))
	}
}

func (r *report) validateComponents(components []workv1alpha2.Component) {
	names := uniqueValues[string]{}
	for i := range components {
		path := specPath().Child("components").Index(i).Child("name")
		if components[i].Name == "" {
			r.addErrors(field.Required(path, "every component needs a name"))
			continue
		}
		names.add(r, path, components[i].Name)
	}
}
