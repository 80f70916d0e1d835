package v1alpha2

// Labels and annotations of a binding on itself, on its Works and on the objects in clusters.
const (
	// ResourceBindingPermanentIDLabel holds the random UUID of a
	// ResourceBinding. The binding, its Works and the objects in clusters have
	// this label.
	ResourceBindingPermanentIDLabel = "resourcebinding.karmada.io/permanent-id"

	// ClusterResourceBindingPermanentIDLabel holds the random UUID of a
	// ClusterResourceBinding. The binding, its Works and the objects in clusters
	// have this label.
	ClusterResourceBindingPermanentIDLabel = "clusterresourcebinding.karmada.io/permanent-id"

	// BindingManagedByLabel names the system other than a policy that created
	// the binding.
	BindingManagedByLabel = "binding.karmada.io/managed-by"

	// ResourceBindingNamespaceAnnotation holds, on a Work and its manifest, the
	// namespace of the ResourceBinding.
	ResourceBindingNamespaceAnnotation = "resourcebinding.karmada.io/namespace"

	// ResourceBindingNameAnnotation holds, on a Work and its manifest, the name
	// of the ResourceBinding.
	ResourceBindingNameAnnotation = "resourcebinding.karmada.io/name"

	// ClusterResourceBindingAnnotation holds, on a Work and its manifest, the
	// name of the ClusterResourceBinding.
	ClusterResourceBindingAnnotation = "clusterresourcebinding.karmada.io/name"
)

// Annotations of a binding about its Works. Most bindings have neither of them.
const (
	// RenderFailuresAnnotation holds a JSON object: for each cluster for which no Work could be
	// rendered from the current binding and template, the reason. It is absent if there is no
	// such cluster.
	RenderFailuresAnnotation = "work.karmada.io/render-failures"

	// RenderedGenerationAnnotation holds the UID of the binding, a slash, and a generation of
	// the binding. In that generation all Works were current, although the annotation
	// work.karmada.io/rendered-from of some Work does not show that. The UID is that of the
	// binding, so that the annotation has no effect in a copy of the binding.
	RenderedGenerationAnnotation = "work.karmada.io/rendered-generation"
)

// Labels and annotations of dependencies between bindings.
const (
	// DependedByLabelPrefix, followed by the reference key of the binding of a dependent
	// object, is a label on the binding of its dependency. The value is the permanent ID of the
	// binding of the dependent object.
	DependedByLabelPrefix = "resourcebinding.karmada.io/depended-by-"

	// DependenciesAnnotation holds, on the binding of a dependent object, a JSON
	// array of references to its dependencies.
	DependenciesAnnotation = "resourcebinding.karmada.io/dependencies"

	// SuspendedByDependentsAnnotation holds, on the binding of a dependency, a JSON object that maps
	// the binding of each dependent object, as namespace/name, to an array of the clusters in which
	// its dispatching is suspended. The array ["*"] means all clusters of this dependent in
	// spec.requiredBy. The annotation is absent if no dependent is suspended.
	SuspendedByDependentsAnnotation = "work.karmada.io/suspended-by-dependents"
)

// Labels and annotations of templates, which are the objects of users, and of their manifests.
const (
	// ResourceTemplateUIDAnnotation holds, on a manifest, the UID of the
	// template.
	ResourceTemplateUIDAnnotation = "resourcetemplate.karmada.io/uid"

	// ResourceTemplateGenerationAnnotation holds, on a manifest, the generation
	// of the template in decimal, when it has one.
	ResourceTemplateGenerationAnnotation = "resourcetemplate.karmada.io/generation"

	// ManagedAnnotations holds, on a manifest, the sorted keys of the annotations of the
	// manifest, joined by commas. The list includes the keys ManagedAnnotations and
	// ManagedLabels.
	ManagedAnnotations = "resourcetemplate.karmada.io/managed-annotations"

	// ManagedLabels holds, on a manifest, the sorted keys of the labels that the manifest
	// contains, joined by commas.
	ManagedLabels = "resourcetemplate.karmada.io/managed-labels"

	// RetainReplicasLabel on a template, with the value RetainReplicasValue,
	// makes each cluster keep its current number of replicas.
	RetainReplicasLabel = "resourcetemplate.karmada.io/retain-replicas"

	// RetainReplicasValue is the value of RetainReplicasLabel.
	RetainReplicasValue = "true"

	// RetainReplicasSetByAnnotation on a template names the controller that set
	// RetainReplicasLabel and removes it again. It is absent if a user set the label.
	RetainReplicasSetByAnnotation = "resourcetemplate.karmada.io/retain-replicas-set-by"

	// RetainReplicasSetByMarker is the value of RetainReplicasSetByAnnotation for the
	// controller hpaScaleTargetMarker.
	RetainReplicasSetByMarker = "hpa-scale-target-marker"

	// ResourceTemplateClaimedByLabel on a template, when not empty, names the
	// kind that propagates it; policies do not claim it.
	ResourceTemplateClaimedByLabel = "resourcetemplate.karmada.io/claimed-by"

	// DeletionProtectionLabel on any object of the control plane, with the value
	// DeletionProtectionAlways, makes the API server reject its deletion.
	DeletionProtectionLabel = "resourcetemplate.karmada.io/deletion-protected"

	// DeletionProtectionAlways is the value of DeletionProtectionLabel.
	DeletionProtectionAlways = "Always"

	// DeletionProtectionAdmission is the name of the admission webhook that rejects the
	// deletion of objects with DeletionProtectionLabel.
	DeletionProtectionAdmission = "resourcedeletionprotection.karmada.io"
)

// The annotation, with its values, that defines what Karmada does when a cluster has an object
// of the same name that Karmada did not create.
const (
	// ResourceConflictResolutionAnnotation holds the resolution, on a template, a
	// Work and a manifest.
	ResourceConflictResolutionAnnotation = "work.karmada.io/conflict-resolution"

	// ResourceConflictResolutionOverwrite takes the object over.
	ResourceConflictResolutionOverwrite = "overwrite"

	// ResourceConflictResolutionAbort does not change the object.
	ResourceConflictResolutionAbort = "abort"
)

// Finalizers of bindings.
const (
	// BindingControllerFinalizer keeps a ResourceBinding until its Works are
	// deleted.
	BindingControllerFinalizer = "karmada.io/binding-controller"

	// ClusterResourceBindingControllerFinalizer keeps a ClusterResourceBinding
	// until its Works are deleted.
	ClusterResourceBindingControllerFinalizer = "karmada.io/cluster-resource-binding-controller"

	// BindingDependenciesDistributorFinalizer keeps a ResourceBinding until its
	// dependencies are released.
	BindingDependenciesDistributorFinalizer = "karmada.io/binding-dependencies-distributor"
)

// Conditions of bindings and their reasons.
const (
	// Scheduled reports whether the scheduler has placed the object.
	Scheduled = "Scheduled"

	// FullyApplied reports whether all clusters have the object.
	FullyApplied = "FullyApplied"

	// BindingReasonSuccess: the object is placed.
	BindingReasonSuccess = "Success"

	// BindingReasonSchedulerError: the scheduler returned an error.
	BindingReasonSchedulerError = "SchedulerError"

	// BindingReasonNoClusterFit: no cluster satisfies the placement.
	BindingReasonNoClusterFit = "NoClusterFit"

	// BindingReasonUnschedulable: clusters satisfy the placement but cannot take
	// all replicas.
	BindingReasonUnschedulable = "Unschedulable"

	// BindingReasonQuotaExceeded: a FederatedResourceQuota forbids the replicas.
	BindingReasonQuotaExceeded = "QuotaExceeded"

	// BindingReasonSchedulerNotReporting: the scheduler that the binding names
	// has not reported a result.
	BindingReasonSchedulerNotReporting = "SchedulerNotReporting"

	// BindingReasonClusterRemoved: a cluster was removed, and no scheduler places its
	// replicas in other clusters.
	BindingReasonClusterRemoved = "ClusterRemoved"

	// FullyAppliedSuccessReason: all clusters have the object.
	FullyAppliedSuccessReason = "FullyAppliedSuccess"

	// FullyAppliedFailedReason: some cluster does not have the object.
	FullyAppliedFailedReason = "FullyAppliedFailed"

	// FullyAppliedSuccessMessage is the message for FullyAppliedSuccessReason.
	FullyAppliedSuccessMessage = "All works have been successfully applied"

	// FullyAppliedFailedMessage is the message for FullyAppliedFailedReason.
	FullyAppliedFailedMessage = "Failed to apply all works, see status.aggregatedStatus for details"
)

// The condition about copies that a suspension keeps.
const (
	// DeletionSuspended on a binding reports that objects stay in clusters that the binding no longer
	// needs, because the dispatching to these clusters is suspended.
	DeletionSuspended = "DeletionSuspended"

	// DeletionSuspendedReason is the reason for DeletionSuspended.
	DeletionSuspendedReason = "DispatchingSuspended"
)

// Reasons and producers of eviction tasks.
const (
	// EvictionReasonTaintUntolerated: the cluster has a NoExecute taint that the
	// placement does not tolerate.
	EvictionReasonTaintUntolerated = "TaintUntolerated"

	// EvictionReasonApplicationFailure: the application was unhealthy for too
	// long.
	EvictionReasonApplicationFailure = "ApplicationFailure"

	// EvictionReasonRescheduled means that the scheduler moved the workload to other clusters.
	EvictionReasonRescheduled = "Rescheduled"

	// EvictionProducerScheduler is the producer of evictions because the scheduler moved a workload
	// to other clusters. The scheduler may choose the cluster of such an eviction again.
	EvictionProducerScheduler = "Scheduler"

	// EvictionProducerTaintManager is the producer of evictions because of taints.
	EvictionProducerTaintManager = "TaintManager"

	// EvictionProducerApplicationFailover is the producer of evictions because the application
	// of a ResourceBinding is unhealthy.
	EvictionProducerApplicationFailover = "resource-binding-application-failover-controller"

	// EvictionProducerClusterApplicationFailover is the producer of evictions because the
	// application of a ClusterResourceBinding is unhealthy.
	EvictionProducerClusterApplicationFailover = "cluster-resource-binding-application-failover-controller"
)
