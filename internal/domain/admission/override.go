package admission

import (
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func (r *report) overrideSpec(spec *policyv1alpha1.OverrideSpec, clusterWide string) {
	path := specPath()
	r.selectors(path.Child("resourceSelectors"), spec.ResourceSelectors, clusterWide)
	r.deprecatedOverride(spec)
	for i := range spec.OverrideRules {
		rule, at := &spec.OverrideRules[i], path.Child("overrideRules").Index(i)
		r.clusterAffinity(at.Child("targetCluster"), rule.TargetCluster)
		r.overriders(at.Child("overriders"), &rule.Overriders)
		r.ineffectiveOverriders(at.Child("overriders"), &rule.Overriders)
	}
}

// deprecatedOverride is about the single rule at the top of the spec, which
// overrideRules have replaced.
func (r *report) deprecatedOverride(spec *policyv1alpha1.OverrideSpec) {
	path := specPath()
	r.clusterAffinity(path.Child("targetCluster"), spec.TargetCluster)
	if spec.TargetCluster != nil {
		r.deprecatedField(path.Child("targetCluster"), spec)
	}
	switch fields := len(spec.Overriders.FieldOverrider) > 0; {
	case hasOverriders(&spec.Overriders):
		r.deprecatedField(path.Child("overriders"), spec)
	case fields && len(spec.OverrideRules) > 0:
		r.warn(path.Child("overriders", "fieldOverrider"), "has no effect beside overrideRules; move it there")
	case fields:
		r.warn(path.Child("overriders"), "is deprecated; use overrideRules")
	}
	r.ineffectiveOverriders(path.Child("overriders"), &spec.Overriders)
}

func (r *report) deprecatedField(path *field.Path, spec *policyv1alpha1.OverrideSpec) {
	r.warn(path, "is deprecated; use overrideRules")
	if len(spec.OverrideRules) > 0 {
		r.add(field.Forbidden(path, "excludes overrideRules; move it there"))
	}
}

// hasOverriders leaves fieldOverrider out of account: beside overrideRules it has
// always been accepted there, and ignored.
func hasOverriders(o *policyv1alpha1.Overriders) bool {
	return len(o.Plaintext)+len(o.ImageOverrider)+len(o.CommandOverrider)+len(o.ArgsOverrider)+
		len(o.LabelsOverrider)+len(o.AnnotationsOverrider) > 0
}

func (r *report) overriders(path *field.Path, overriders *policyv1alpha1.Overriders) {
	for i := range overriders.AnnotationsOverrider {
		r.add(apivalidation.ValidateAnnotations(overriders.AnnotationsOverrider[i].Value,
			path.Child("annotationsOverrider").Index(i).Child("value"))...)
	}
	for i := range overriders.LabelsOverrider {
		r.add(metav1validation.ValidateLabels(overriders.LabelsOverrider[i].Value,
			path.Child("labelsOverrider").Index(i).Child("value"))...)
	}
	for i := range overriders.ImageOverrider {
		if predicate := overriders.ImageOverrider[i].Predicate; predicate != nil {
			r.stringPointer(path.Child("imageOverrider").Index(i).Child("predicate", "path"), predicate.Path)
		}
	}
	for i := range overriders.FieldOverrider {
		r.fieldOverrider(path.Child("fieldOverrider").Index(i), &overriders.FieldOverrider[i])
	}
}

func (r *report) fieldOverrider(path *field.Path, overrider *policyv1alpha1.FieldOverrider) {
	r.stringPointer(path.Child("fieldPath"), overrider.FieldPath)
	hasJSON, hasYAML := len(overrider.JSON) > 0, len(overrider.YAML) > 0
	switch {
	case hasJSON && hasYAML:
		r.add(field.Invalid(path, overrider.FieldPath, "json and yaml exclude each other"))
	case !hasJSON && !hasYAML:
		r.add(field.Required(path, "one of json and yaml is needed"))
	}
	for i, operation := range overrider.JSON {
		r.operation(path.Child("json").Index(i), operation)
	}
	for i, operation := range overrider.YAML {
		r.operation(path.Child("yaml").Index(i), policyv1alpha1.JSONPatchOperation(operation))
	}
}

func (r *report) operation(path *field.Path, operation policyv1alpha1.JSONPatchOperation) {
	r.pointer(path.Child("subPath"), operation.SubPath)
	given := len(operation.Value.Raw) > 0
	switch operation.Operator {
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace:
		if !given {
			r.add(field.Required(path.Child("value"), "add and replace need a value"))
		}
	case policyv1alpha1.OverriderOpRemove:
		if given {
			r.add(field.Forbidden(path.Child("value"), "remove takes no value"))
		}
	}
}

// pointer wants a JSON pointer (RFC 6901); the empty one is the whole document.
func (r *report) pointer(path *field.Path, pointer string) {
	if pointer == "" {
		return
	}
	if !strings.HasPrefix(pointer, "/") {
		r.add(field.Invalid(path, pointer, "a JSON pointer begins with '/'; write "+strconv.Quote(asPointer(pointer))))
	}
	rest := strings.NewReplacer("~0", "", "~1", "").Replace(pointer)
	if strings.Contains(rest, "~") {
		r.add(field.Invalid(path, pointer, "in a JSON pointer '~' is followed by 0 or 1"))
	}
}

// asPointer returns the JSON pointer that was probably meant by a path without a
// leading slash: with slashes missing, dots stand between the fields.
func asPointer(path string) string {
	path = strings.TrimPrefix(path, "$")
	if !strings.Contains(path, "/") {
		path = strings.ReplaceAll(path, ".", "/")
	}
	return "/" + strings.TrimPrefix(path, "/")
}

// stringPointer wants a JSON pointer that can lead to a string, which the whole
// document is not.
func (r *report) stringPointer(path *field.Path, pointer string) {
	if pointer == "" {
		r.add(field.Required(path, "a JSON pointer to a string is needed"))
	}
	r.pointer(path, pointer)
}
