package v1alpha1

// MultiClusterServiceKind is the kind of a MultiClusterService. Labels that name the kind
// for which an object is managed, such as EndpointSliceManagedByLabel, have this value too.
const MultiClusterServiceKind = "MultiClusterService"

// Labels of the objects created for a MultiClusterService.
const (
	// MultiClusterServicePermanentIDLabel holds the random UUID of a
	// MultiClusterService, on itself and on the Service, binding and Works that
	// belong to it.
	MultiClusterServicePermanentIDLabel = "multiclusterservice.karmada.io/permanent-id"

	// MultiClusterServiceNamespaceLabel holds, on a Work, the namespace of the
	// MultiClusterService that it belongs to.
	MultiClusterServiceNamespaceLabel = "multiclusterservice.karmada.io/namespace"

	// MultiClusterServiceNameLabel holds, on a Work, the name of the
	// MultiClusterService that it belongs to.
	MultiClusterServiceNameLabel = "multiclusterservice.karmada.io/name"
)

// Annotations of the Service taken over by a MultiClusterService and of its
// binding.
const (
	// MultiClusterServiceNamespaceAnnotation holds the namespace of the
	// MultiClusterService.
	MultiClusterServiceNamespaceAnnotation = "multiclusterservice.karmada.io/namespace"

	// MultiClusterServiceNameAnnotation holds the name of the
	// MultiClusterService.
	MultiClusterServiceNameAnnotation = "multiclusterservice.karmada.io/name"
)

// Finalizers of a MultiClusterService and of the Works of its endpoints.
const (
	// MultiClusterServiceFinalizer keeps a MultiClusterService until the Works
	// created for it are gone.
	MultiClusterServiceFinalizer = "karmada.io/multiclusterservice-controller"

	// MCSEndpointSliceCollectFinalizer is a reserved name: nothing adds or
	// removes it.
	MCSEndpointSliceCollectFinalizer = "karmada.io/mcs-endpointslice-collect-controller"

	// MCSEndpointSliceDispatchFinalizer keeps the Work of a collected
	// EndpointSlice until its copies in the consumer clusters are gone.
	MCSEndpointSliceDispatchFinalizer = "karmada.io/mcs-endpointslice-dispatch-controller"
)

// EndpointSliceDispatchManagedBy is the value of the label
// endpointslice.kubernetes.io/managed-by on an EndpointSlice dispatched to a
// consumer cluster. Such slices are never collected again.
const EndpointSliceDispatchManagedBy = "endpointslice-dispatch-controller.karmada.io"

// Condition types of a MultiClusterService, with the reasons for True and False.
const (
	// MCSServiceAppliedConditionType reports whether the Service was delivered to the
	// clusters.
	MCSServiceAppliedConditionType = "ServiceApplied"
	// MCSServiceAppliedSucceed is the reason of ServiceApplied with status True.
	MCSServiceAppliedSucceed = "ServiceAppliedSucceed"
	// MCSServiceAppliedFailed is the reason of ServiceApplied with status False.
	MCSServiceAppliedFailed = "ServiceAppliedFailed"

	// MCSEndpointSliceDispatchedConditionType reports whether the endpoints were
	// delivered to the consumer clusters.
	MCSEndpointSliceDispatchedConditionType = "EndpointSliceDispatched"
	// MCSEndpointSliceDispatchedSucceed is the reason of EndpointSliceDispatched with
	// status True.
	MCSEndpointSliceDispatchedSucceed = "EndpointSliceDispatchedSucceed"
	// MCSEndpointSliceDispatchedFailed is the reason of EndpointSliceDispatched with status
	// False.
	MCSEndpointSliceDispatchedFailed = "EndpointSliceDispatchedFailed"
)

// Reasons of the events on a MultiClusterService. Those that end in Succeed are
// of type Normal, the others of type Warning.
const (
	EventReasonSyncServiceSucceed           = "SyncServiceSucceed"
	EventReasonSyncServiceFailed            = "SyncServiceFailed"
	EventReasonDispatchEndpointSliceSucceed = "DispatchEndpointSliceSucceed"
	EventReasonDispatchEndpointSliceFailed  = "DispatchEndpointSliceFailed"
	EventReasonClusterNotFound              = "ClusterNotFound"
	EventReasonAPIIncompatible              = "APIIncompatible"
)
