package admission

import (
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func (r *report) validateOverrideSpec(spec *policyv1alpha1.OverrideSpec, clusterWide string) {
	path := specPath()
	r.warnIneffectiveSelectors(path.Child("resourceSelectors"), spec.ResourceSelectors, clusterWide)
	r.validateDeprecatedOverride(spec)
	for i := range spec.OverrideRules {
		rule, itemPath := &spec.OverrideRules[i], path.Child("overrideRules").Index(i)
		r.validateClusterAffinity(itemPath.Child("targetCluster"), rule.TargetCluster)
		r.validateOverriders(itemPath.Child("overriders"), &rule.Overriders)
		r.warnIneffectiveOverriders(itemPath.Child("overriders"), &rule.Overriders)
	}
}

// validateDeprecatedOverride validates the deprecated fields targetCluster and overriders, which
// together form a single rule. The field overrideRules replaces both.
func (r *report) validateDeprecatedOverride(spec *policyv1alpha1.OverrideSpec) {
	path := specPath()
	r.validateClusterAffinity(path.Child("targetCluster"), spec.TargetCluster)
	if spec.TargetCluster != nil {
		r.reportDeprecatedField(path.Child("targetCluster"), spec)
	}
	switch fields := len(spec.Overriders.FieldOverrider) > 0; {
	case hasOverriders(&spec.Overriders):
		r.reportDeprecatedField(path.Child("overriders"), spec)
	case fields && len(spec.OverrideRules) > 0:
		r.addWarning(path.Child("overriders", "fieldOverrider"), "has no effect beside overrideRules; move it there")
	case fields:
		r.addWarning(path.Child("overriders"), "is deprecated; use overrideRules")
	}
	r.warnIneffectiveOverriders(path.Child("overriders"), &spec.Overriders)
}

func (r *report) reportDeprecatedField(path *field.Path, spec *policyv1alpha1.OverrideSpec) {
	r.addWarning(path, "is deprecated; use overrideRules")
	if len(spec.OverrideRules) > 0 {
		r.addErrors(field.Forbidden(path, "excludes overrideRules; move it there"))
	}
}

// hasOverriders reports whether the deprecated overriders are set. It ignores fieldOverrider, because
// upstream accepts fieldOverrider together with overrideRules, and then ignores it.
func hasOverriders(o *policyv1alpha1.Overriders) bool {
	return len(o.Plaintext)+len(o.ImageOverrider)+len(o.CommandOverrider)+len(o.ArgsOverrider)+
		len(o.LabelsOverrider)+len(o.AnnotationsOverrider) > 0
}

func (r *report) validateOverriders(path *field.Path, overriders *policyv1alpha1.Overriders) {
	for i := range overriders.AnnotationsOverrider {
		r.addErrors(apivalidation.ValidateAnnotations(overriders.AnnotationsOverrider[i].Value,
			path.Child("annotationsOverrider").Index(i).Child("value"))...)
	}
	for i := range overriders.LabelsOverrider {
		r.addErrors(metav1validation.ValidateLabels(overriders.LabelsOverrider[i].Value,
			path.Child("labelsOverrider").Index(i).Child("value"))...)
	}
	for i := range overriders.ImageOverrider {
		if predicate := overriders.ImageOverrider[i].Predicate; predicate != nil {
			r.validateStringPointer(path.Child("imageOverrider").Index(i).Child("predicate", "path"), predicate.Path)
		}
	}
	for i := range overriders.FieldOverrider {
		r.validateFieldOverrider(path.Child("fieldOverrider").Index(i), &overriders.FieldOverrider[i])
	}
}

func (r *report) validateFieldOverrider(path *field.Path, overrider *policyv1alpha1.FieldOverrider) {
	r.validateStringPointer(path.Child("fieldPath"), overrider.FieldPath)
	hasJSON, hasYAML := len(overrider.JSON) > 0, len(overrider.YAML) > 0
	switch {
	case hasJSON && hasYAML:
		r.addErrors(field.Invalid(path, overrider.FieldPath, "json and yaml exclude each other"))
	case !hasJSON && !hasYAML:
		r.addErrors(field.Required(path, "one of json and yaml is needed"))
	}
	for i, operation := range overrider.JSON {
		r.validateOperation(path.Child("json").Index(i), operation)
	}
	for i, operation := range overrider.YAML {
		r.validateOperation(path.Child("yaml").Index(i), policyv1alpha1.JSONPatchOperation(operation))
	}
}

func (r *report) validateOperation(path *field.Path, operation policyv1alpha1.JSONPatchOperation) {
	r.validatePointer(path.Child("subPath"), operation.SubPath)
	given := len(operation.Value.Raw) > 0
	switch operation.Operator {
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace:
		if !given {
			r.addErrors(field.Required(path.Child("value"), "add and replace need a value"))
		}
	case policyv1alpha1.OverriderOpRemove:
		if given {
			r.addErrors(field.Forbidden(path.Child("value"), "remove takes no value"))
		}
	}
}

// validatePointer validates a JSON pointer (RFC 6901). An empty pointer is valid.
func (r *report) validatePointer(path *field.Path, pointer string) {
	if pointer == "" {
		return
	}
	if !strings.HasPrefix(pointer, "/") {
		r.addErrors(field.Invalid(path, pointer, "a JSON pointer begins with '/'; write "+strconv.Quote(suggestPointer(pointer))))
	}
	rest := strings.NewReplacer("~0", "", "~1", "").Replace(pointer)
	if strings.Contains(rest, "~") {
		r.addErrors(field.Invalid(path, pointer, "in a JSON pointer '~' is followed by 0 or 1"))
	}
}

// suggestPointer returns the JSON pointer that the user probably meant by a path without a leading
// slash. If the path contains no slashes, dots are taken as field separators.
func suggestPointer(path string) string {
	path = strings.TrimPrefix(path, "$")
	if !strings.Contains(path, "/") {
		path = strings.ReplaceAll(path, ".", "/")
	}
	return "/" + strings.TrimPrefix(path, "/")
}

// validateStringPointer validates a JSON pointer to a string. An empty pointer is invalid, because it
// refers to the whole document, which is not a string.
func (r *report) validateStringPointer(path *field.Path, pointer string) {
	if pointer == "" {
		r.addErrors(field.Required(path, "a JSON pointer to a string is needed"))
	}
	r.validatePointer(path, pointer)
}
