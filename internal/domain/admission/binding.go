package admission

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func (r *report) binding(binding *workv1alpha2.ResourceBinding, multiplePodTemplates bool) {
	r.dependencies(binding.Annotations)
	if multiplePodTemplates {
		r.components(binding.Spec.Components)
	}
}

func (r *report) dependencies(annotations map[string]string) {
	value, ok := annotations[workv1alpha2.DependenciesAnnotation]
	if !ok {
		return
	}
	var references []configv1alpha1.DependentObjectReference
	if err := json.Unmarshal([]byte(value), &references); err != nil {
		r.add(field.Invalid(field.NewPath("metadata", "annotations").Key(workv1alpha2.DependenciesAnnotation), value,
			"must be a JSON array of references to objects: "+err.Error()))
	}
}

func (r *report) components(components []workv1alpha2.Component) {
	names := unique[string]{}
	for i := range components {
		at := specPath().Child("components").Index(i).Child("name")
		if components[i].Name == "" {
			r.add(field.Required(at, "components are told apart by name"))
			continue
		}
		names.see(r, at, components[i].Name)
	}
}
