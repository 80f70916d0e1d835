// Package v1alpha1 is the API that teaches the control plane kinds it does not
// know: how many replicas an object asks for, how healthy it is, what it
// depends on, which fields a member cluster owns.
//
// The knowledge comes from one of two cluster-scoped kinds:
//
//   - ResourceInterpreterCustomization carries Lua scripts and runs inside the
//     control plane;
//   - ResourceInterpreterWebhookConfiguration names an HTTPS endpoint, which
//     then talks in ResourceInterpreterContext documents.
//
// Invariant: for one operation on one kind the declarative source is asked
// before the webhook, and the first source that has a rule gives the final
// answer, an error included.
//
// +kubebuilder:object:generate=true
// +groupName=config.karmada.io
package v1alpha1
