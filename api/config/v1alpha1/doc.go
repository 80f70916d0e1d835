// Package v1alpha1 is the API that defines how the control plane interprets custom
// kinds: how many replicas an object requests, whether it is healthy, which objects
// it depends on, and which fields a member cluster owns.
//
// The rules come from one of two cluster-scoped kinds:
//
//   - ResourceInterpreterCustomization contains Lua scripts, which run inside the
//     control plane;
//   - ResourceInterpreterWebhookConfiguration names an HTTPS endpoint, which
//     receives and returns ResourceInterpreterContext documents.
//
// Invariant: for each operation on a kind, the control plane evaluates the
// customization before the webhook. It uses the result of the first source that has
// a rule, even if this result is an error.
//
// +kubebuilder:object:generate=true
// +groupName=config.karmada.io
package v1alpha1
