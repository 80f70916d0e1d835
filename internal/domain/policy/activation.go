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
	// RulesChanged means that the interpreter rules for the template's kind have changed. It does not
	// affect templates of Lazy policies, whose bindings change only after a user changes the template.
	RulesChanged
)

// Activation determines whether a pass may change the template's binding.
type Activation struct {
	// Deferred means that only the claim is written. The binding is neither created nor updated until a
	// user changes the template.
	Deferred bool
	// UserState is the template's UserHash, which is stored in policyv1alpha1.UserStateAnnotation of
	// the binding or, if Deferred is true, of the template. It is empty for policies that are not Lazy.
	UserState string
}

// DecideActivation decides whether a pass may change the binding, which is nil if it does not exist. A
// Lazy policy allows this only if a user has changed the template since the recorded state, and any
// other policy always allows it.
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

// SetUserState records a user state (see Activation) on a template or binding. An empty state removes
// the annotation. The existing annotation map is not modified but replaced.
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

// recordedState returns the user state that is recorded on the binding or, if there is no binding, on
// the template. A template has a recorded user state only if its claim was deferred.
func recordedState(template *unstructured.Unstructured, binding metav1.Object) string {
	if binding != nil {
		return binding.GetAnnotations()[policyv1alpha1.UserStateAnnotation]
	}
	return template.GetAnnotations()[policyv1alpha1.UserStateAnnotation]
}
