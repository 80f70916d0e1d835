package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Trigger is the reason why a template is reconciled.
type Trigger int

const (
	// TemplateChanged means that the template was created or changed, or that it was listed at the
	// start of the process.
	TemplateChanged Trigger = iota
	// PolicyChanged means that a policy was added or changed.
	PolicyChanged
	// RulesChanged means that the interpreter rules for the kind of the template changed. It has no
	// effect on the templates of Lazy policies, because their bindings are changed only after the
	// user changes the template.
	RulesChanged
)

// Activation describes what a policy may do to the binding of a template in one pass.
type Activation struct {
	// Deferred means that only the claim is written. The binding is neither created nor updated
	// until the user changes the template.
	Deferred bool
	// UserState is the hash of the content of the template that users write (UserHash), and the
	// value for policyv1alpha1.UserStateAnnotation. It is written to the binding or, if Deferred is
	// true, to the template together with the claim. It is empty for policies that are not Lazy.
	UserState string
}

// DecideActivation decides whether a pass may change the binding. If the policy is not Lazy, every
// pass may change the binding. If the policy is Lazy, a pass may change the binding only if the
// user changed the template since the recorded state. binding is nil if there is no binding.
//
//	recorded state     cause            result
//	the same           any              deferred
//	different          any              activated
//	none               TemplateChanged  activated: the template is new
//	none               another cause    deferred: the template was waiting
func DecideActivation(policy Object, template *unstructured.Unstructured, binding metav1.Object, cause Trigger) (Activation, error) {
	if !IsLazy(policy) {
		return Activation{}, nil
	}
	state, err := UserHash(template)
	if err != nil {
		return Activation{}, err
	}
	recorded := recordedState(template, binding)
	deferred := recorded == state
	if recorded == "" {
		deferred = cause != TemplateChanged
	}
	return Activation{Deferred: deferred, UserState: state}, nil
}

// SetUserState records a user state (see Activation) on a template or binding. An empty state
// removes the annotation. If the state changes, the object gets a new map of annotations, so the
// old map is not modified.
func SetUserState(object metav1.Object, state string) {
	if object.GetAnnotations()[policyv1alpha1.UserStateAnnotation] == state {
		return
	}
	annotations := copyMap(object.GetAnnotations())
	delete(annotations, policyv1alpha1.UserStateAnnotation)
	if state != "" {
		annotations[policyv1alpha1.UserStateAnnotation] = state
	}
	object.SetAnnotations(nilIfEmpty(annotations))
}

// recordedState returns the user state that is recorded on the binding. The binding was created
// from the template in that state. If there is no binding, recordedState returns the user state on
// the template, which is recorded only with a deferred claim.
func recordedState(template *unstructured.Unstructured, binding metav1.Object) string {
	if binding != nil {
		return binding.GetAnnotations()[policyv1alpha1.UserStateAnnotation]
	}
	return template.GetAnnotations()[policyv1alpha1.UserStateAnnotation]
}
