package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// PatchType is the format of the patch in a response.
type PatchType string

// PatchTypeJSONPatch is a JSON Patch document as in RFC 6902.
const PatchTypeJSONPatch PatchType = "JSONPatch"

// ResourceInterpreterContext is one call of an interpreter webhook. The control
// plane posts it with a request. The webhook returns the same document with a
// response. It is never stored.
//
// +kubebuilder:object:root=true
type ResourceInterpreterContext struct {
	metav1.TypeMeta `json:",inline"`

	// Request is the request of the control plane. The webhook leaves it out.
	// +optional
	Request *ResourceInterpreterRequest `json:"request,omitempty"`

	// Response is the response of the webhook. The control plane leaves it out.
	// +optional
	Response *ResourceInterpreterResponse `json:"response,omitempty"`
}

// ResourceInterpreterRequest requests one operation on one object.
type ResourceInterpreterRequest struct {
	// UID identifies the request, uniquely. The response repeats it.
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

	// Operation is the operation to perform.
	// +required
	Operation InterpreterOperation `json:"operation"`

	// Object is the object to interpret: the template, the object about to be
	// applied (Retain), or the member object (InterpretStatus,
	// InterpretHealth).
	// +optional
	Object runtime.RawExtension `json:"object,omitempty"`

	// ObservedObject is the current object in the member cluster. Set only for
	// Retain.
	// +optional
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`

	// DesiredReplicas is the number of replicas to set. Used only by
	// ReviseReplica; 0 for the other operations.
	// +optional
	DesiredReplicas *int32 `json:"replicas,omitempty"`

	// AggregatedStatus holds the status of each cluster. Set only for
	// AggregateStatus.
	// +optional
	AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// ResourceInterpreterResponse is the response to one request. The operation
// determines the required fields.
type ResourceInterpreterResponse struct {
	// UID is the identifier of the request. A response with a different UID is
	// rejected.
	// +required
	UID types.UID `json:"uid"`

	// Successful reports whether the operation succeeded. If not, status must
	// hold the reason.
	// +required
	Successful bool `json:"successful"`

	// Status explains a failure.
	// +optional
	Status *RequestStatus `json:"status,omitempty"`

	// Patch changes the object of the request into the desired object, in the
	// format of patchType. ReviseReplica, Retain and AggregateStatus return
	// both fields, or neither when nothing changes.
	// +optional
	Patch []byte `json:"patch,omitempty"`

	// PatchType is the format of patch. Only "JSONPatch" is supported.
	// +optional
	PatchType *PatchType `json:"patchType,omitempty"`

	// ReplicaRequirements are the requirements of one replica. Optional for
	// InterpretReplica.
	// +optional
	ReplicaRequirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas is the desired number of replicas of the object. Required for
	// InterpretReplica.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Components lists the components of the object. Returned by
	// InterpretComponent.
	// +optional
	Components []workv1alpha2.Component `json:"components,omitempty"`

	// Dependencies lists the objects that the object depends on. Returned by
	// InterpretDependency.
	// +optional
	Dependencies []DependentObjectReference `json:"dependencies,omitempty"`

	// RawStatus is the status to collect. Required for InterpretStatus.
	// +optional
	RawStatus *runtime.RawExtension `json:"rawStatus,omitempty"`

	// Healthy reports whether the object is healthy. Required for
	// InterpretHealth.
	// +optional
	Healthy *bool `json:"healthy,omitempty"`
}

// RequestStatus holds the reason of a failed request.
type RequestStatus struct {
	// Message is the reason, for humans.
	// +optional
	Message string `json:"message,omitempty"`

	// Code is the matching HTTP status code.
	// +optional
	Code int32 `json:"code,omitempty"`
}
