package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// UserStateAnnotation holds the UserHash of a template of a Lazy policy. On a
// binding it is the state of the template from which the binding was made. On a
// template it is the state in which the template was claimed without a binding.
// The annotation distinguishes a change by the user from a restart of the controller.
const UserStateAnnotation = "policy.karmada.io/user-state"

// Trigger is the reason for which a template is reconciled.
type Trigger int

const (
	// TemplateChanged covers creation, changes, and the list at start-up.
	TemplateChanged Trigger = iota
	// PolicyChanged means that a policy was added or changed.
	PolicyChanged
)

// Activation describes what a policy may do to the binding of a template in one pass.
type Activation struct {
	// Deferred means that only the claim is written. The binding is neither created
	// nor updated until the user changes the template.
	Deferred bool
	// UserState is the value for UserStateAnnotation: on the binding, or on the
	// template together with the claim when Deferred. It is empty for policies
	// that are not Lazy.
	UserState string
}

// DecideActivation decides whether a pass may change the binding. Policies that are not
// Lazy always may. A Lazy policy may if the user changed the template since the
// recorded state. binding is nil if there is none.
//
//	recorded state     cause            result
//	the same           any              deferred
//	different          any              activated
//	none               TemplateChanged  activated: the template is new
//	none               PolicyChanged    deferred: the template was waiting
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
		deferred = cause == PolicyChanged
	}
	return Activation{Deferred: deferred, UserState: state}, nil
}

// recordedState returns the state on the binding, if there is one, because the binding
// was made from that state. The state on a template is only that of a deferred claim.
func recordedState(template *unstructured.Unstructured, binding metav1.Object) string {
	if binding != nil {
		return binding.GetAnnotations()[UserStateAnnotation]
	}
	return template.GetAnnotations()[UserStateAnnotation]
}
