// Package templates answers "which templates are to be reconciled, and why?". It defines the
// identity of a template, the request to reconcile a template, and the queue of these requests.
package templates

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
)

// Ref identifies a template.
type Ref struct {
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
}

// RefOf returns the reference of an object of a kind.
func RefOf(kind schema.GroupVersionKind, object metav1.Object) Ref {
	return NewRef(kind, object.GetNamespace(), object.GetName())
}

// RefFromBinding returns the reference of the template of a binding.
func RefFromBinding(resource *workv1alpha2.ObjectReference) Ref {
	return NewRef(schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind), resource.Namespace, resource.Name)
}

// NewRef returns the reference of a template. The namespace of a cluster-scoped template is
// empty.
func NewRef(kind schema.GroupVersionKind, namespace, name string) Ref {
	return Ref{Kind: kind, Key: types.NamespacedName{Namespace: namespace, Name: name}}
}

// String returns the kind, namespace and name for messages.
func (r Ref) String() string { return r.Kind.Kind + " " + r.Key.String() }

// Stub returns an object that has only the fields that selectors match.
func (r Ref) Stub(templateLabels labels.Set) *unstructured.Unstructured {
	object := NewObject(r.Kind)
	object.SetNamespace(r.Key.Namespace)
	object.SetName(r.Key.Name)
	object.SetLabels(templateLabels)
	return object
}

// NewObject returns an empty object of a kind.
func NewObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// Request is a request to reconcile a template. The same template may be queued twice, once for
// each cause.
type Request struct {
	Ref
	Cause policy.Trigger
}

// Request returns the request to reconcile the template for a cause.
func (r Ref) Request(cause policy.Trigger) Request { return Request{Ref: r, Cause: cause} }
