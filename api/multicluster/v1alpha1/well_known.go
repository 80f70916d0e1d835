package v1alpha1

// Kinds of this group.
const (
	// ServiceExportKind is the kind of an export. It is also the value of
	// EndpointSliceManagedByLabel on endpoints that are collected for an export.
	ServiceExportKind = "ServiceExport"
	// ServiceImportKind is the kind of an import.
	ServiceImportKind = "ServiceImport"
)

// Labels and annotations of the Works that hold EndpointSlices collected from a cluster.
const (
	// EndpointSliceNamespaceLabel holds the namespace of the exported Service.
	EndpointSliceNamespaceLabel = "endpointslice.karmada.io/namespace"

	// EndpointSliceNameLabel holds the name of the exported Service.
	EndpointSliceNameLabel = "endpointslice.karmada.io/name"

	// EndpointSliceManagedByLabel names the kind for which the slice is collected:
	// ServiceExport, MultiClusterService, or both joined by
	// EndpointSliceManagedBySeparator in any order.
	EndpointSliceManagedByLabel = "endpointslice.karmada.io/managed-by"

	// EndpointSliceManagedBySeparator joins the values of
	// EndpointSliceManagedByLabel.
	EndpointSliceManagedBySeparator = "."

	// EndpointSliceProvisionClusterAnnotation holds, on a dispatched
	// EndpointSlice and its Work, the name of the cluster that it comes from.
	EndpointSliceProvisionClusterAnnotation = "endpointslice.karmada.io/provision-cluster"

	// EndpointSliceControllerFinalizer keeps the Work of a collected
	// EndpointSlice until the imported copies are deleted.
	EndpointSliceControllerFinalizer = "karmada.io/endpointslice-controller"
)

// EndpointSliceControllerManagedBy is the value of the label
// endpointslice.kubernetes.io/managed-by on an EndpointSlice imported into the
// control plane. Such slices are never collected again.
const EndpointSliceControllerManagedBy = "endpointslice-controller.karmada.io"

// Prefixes of the names of derived objects.
const (
	// DerivedServicePrefix precedes the name of an import in the name of the
	// Service derived from it.
	DerivedServicePrefix = "derived-"

	// ImportedEndpointSlicePrefix precedes "<cluster>-<slice name>" in the name
	// of an EndpointSlice imported into the control plane.
	ImportedEndpointSlicePrefix = "imported-"
)

// Reasons of the events on a ServiceImport, which are of type Normal or Warning.
const (
	EventReasonSyncDerivedServiceSucceed = "SyncDerivedServiceSucceed"
	EventReasonSyncDerivedServiceFailed  = "SyncDerivedServiceFailed"
)
