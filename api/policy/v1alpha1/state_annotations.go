package v1alpha1

// UserStateAnnotation holds a hash of what the user wrote in a template of a Lazy policy. On a
// binding it is the state of the template from which the binding was made. On a template it is
// the state in which the template was claimed without a binding. The annotation distinguishes a
// change by the user from a restart of the controller.
const UserStateAnnotation = "policy.karmada.io/user-state"

// TemplateStateAnnotation is set on a binding. Its value is a hash of the template at the
// version in spec.resource.resourceVersion, without fields that do not influence the binding.
// A write to the status of the template does not change the hash, so the binding is not
// updated. Without the annotation every restart would rewrite every binding.
const TemplateStateAnnotation = "policy.karmada.io/template-state"
