package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// PatchType says in which form a response describes a change.
type PatchType string

// PatchTypeJSONPatch is a JSON Patch document as in RFC 6902.
const PatchTypeJSONPatch PatchType = "JSONPatch"

// ResourceInterpreterContext is one exchange with an interpreter webhook. The
// control plane posts it with a request; the webhook answers with the same
// document, holding a response. It is never stored.
//
// +kubebuilder:object:root=true
type ResourceInterpreterContext struct {
	metav1.TypeMeta `json:",inline"`

	// Request is the question. It is absent in an answer.
	// +optional
	Request *ResourceInterpreterRequest `json:"request,omitempty"`

	// Response is the answer. It is absent in a question.
	// +optional
	Response *ResourceInterpreterResponse `json:"response,omitempty"`
}

// ResourceInterpreterRequest is one question about one object.
type ResourceInterpreterRequest struct {
	// UID identifies the exchange; the response repeats it. Each request has
	// an identifier of its own.
	// +required
	UID types.UID `json:"uid"`

	// Kind is the group, version and kind of the object.
	// +required
	Kind metav1.GroupVersionKind `json:"kind"`

	// Name is the name of the object.
	// +optional
	Name string `json:"name,omitempty"`

	// Namespace is the namespace of the object, empty when it has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Operation is what is asked.
	// +required
	Operation InterpreterOperation `json:"operation"`

	// Object is the object in question: the template, the object about to be
	// applied (Retain), or the member object (InterpretStatus,
	// InterpretHealth).
	// +optional
	Object runtime.RawExtension `json:"object,omitempty"`

	// ObservedObject is the object as it stands in the member cluster. Only
	// Retain has it.
	// +optional
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`

	// DesiredReplicas is the number of replicas to set. It means something for
	// ReviseReplica only and is 0 for the other operations.
	// +optional
	DesiredReplicas *int32 `json:"replicas,omitempty"`

	// AggregatedStatus holds what each cluster reports. Only AggregateStatus
	// has it.
	// +optional
	AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// ResourceInterpreterResponse is the answer to one request. Which fields it
// must hold depends on the operation.
type ResourceInterpreterResponse struct {
	// UID repeats the identifier of the request; an answer with any other is
	// refused.
	// +required
	UID types.UID `json:"uid"`

	// Successful says whether the question could be answered. If not, status
	// must tell why.
	// +required
	Successful bool `json:"successful"`

	// Status explains a failure.
	// +optional
	Status *RequestStatus `json:"status,omitempty"`

	// Patch turns the object of the request into the wanted one, in the form
	// that patchType names. ReviseReplica, Retain and AggregateStatus answer
	// with both fields, or with neither when nothing is to change.
	// +optional
	Patch []byte `json:"patch,omitempty"`

	// PatchType is the form of patch; only "JSONPatch" is known.
	// +optional
	PatchType *PatchType `json:"patchType,omitempty"`

	// ReplicaRequirements is what one replica needs. InterpretReplica may
	// answer with it.
	// +optional
	ReplicaRequirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas is the number of replicas that the object wants.
	// InterpretReplica must answer with it.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Components lists the components of the object. InterpretComponent
	// answers with it.
	// +optional
	Components []workv1alpha2.Component `json:"components,omitempty"`

	// Dependencies lists the objects that the object needs beside it.
	// InterpretDependency answers with it.
	// +optional
	Dependencies []DependentObjectReference `json:"dependencies,omitempty"`

	// RawStatus is the status to collect. InterpretStatus must answer with it.
	// +optional
	RawStatus *runtime.RawExtension `json:"rawStatus,omitempty"`

	// Healthy says whether the object is healthy. InterpretHealth must answer
	// with it.
	// +optional
	Healthy *bool `json:"healthy,omitempty"`
}

// RequestStatus explains why a question could not be answered.
type RequestStatus struct {
	// Message is the reason, for humans.
	// +optional
	Message string `json:"message,omitempty"`

	// Code is the matching HTTP status code.
	// +optional
	Code int32 `json:"code,omitempty"`
}
