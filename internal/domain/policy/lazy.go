package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// UserStateAnnotation holds the UserHash of a template of a Lazy policy. On a
// binding it says which state of the template the binding was made from; on a
// template it says in which state it was claimed without a binding being made.
// With it a restart does not look like a change by the user.
const UserStateAnnotation = "policy.karmada.io/user-state"

// Cause says why a template is looked at.
type Cause int

const (
	// TemplateChanged covers creation, changes, and the list at start-up.
	TemplateChanged Cause = iota
	// PolicyChanged means that a policy was added or changed.
	PolicyChanged
)

// Activation says what a policy may do to the binding of a template in one pass.
type Activation struct {
	// Deferred: only the claim is written, the binding is left alone, and not
	// created, until the user changes the template.
	Deferred bool
	// UserState is the value for UserStateAnnotation: on the binding, or on the
	// template together with the claim when Deferred. It is empty for policies
	// that are not Lazy.
	UserState string
}

// Activate decides whether a pass may change the binding. Policies that are not
// Lazy always may. A Lazy one may when the user changed the template since it
// was last looked at. binding is nil when there is none.
//
//	recorded state     cause            answer
//	the same           any              deferred
//	another            any              activated
//	none               TemplateChanged  activated: the template is new
//	none               PolicyChanged    deferred: the template was waiting
func Activate(policy Object, template *unstructured.Unstructured, binding metav1.Object, cause Cause) (Activation, error) {
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

// recordedState prefers the binding, if there is one: it tells what was acted
// upon, the template only what was not.
func recordedState(template *unstructured.Unstructured, binding metav1.Object) string {
	if binding != nil {
		return binding.GetAnnotations()[UserStateAnnotation]
	}
	return template.GetAnnotations()[UserStateAnnotation]
}
