package v1alpha1

// Marks of a Work on itself, on its manifests and on the objects in the cluster.
const (
	// WorkPermanentIDLabel holds the random UUID of a Work. The Work, its
	// manifests and the objects in the cluster bear it.
	WorkPermanentIDLabel = "work.karmada.io/permanent-id"

	// WorkNamespaceAnnotation holds, on a manifest, the namespace of its Work.
	WorkNamespaceAnnotation = "work.karmada.io/namespace"

	// WorkNameAnnotation holds, on a manifest, the name of its Work.
	WorkNameAnnotation = "work.karmada.io/name"

	// ManagedByKarmadaLabel marks, with the value ManagedByKarmadaLabelValue, an
	// object in a cluster that Karmada may change and delete.
	ManagedByKarmadaLabel = "karmada.io/managed"

	// ManagedByKarmadaLabelValue is the value of ManagedByKarmadaLabel.
	ManagedByKarmadaLabelValue = "true"
)

// ExecutionFinalizer keeps a Work until its objects in the cluster are deleted.
const ExecutionFinalizer = "karmada.io/execution-controller"

// Conditions of Works and their reasons.
const (
	// WorkApplied says whether the cluster has all manifests in their present
	// form.
	WorkApplied = "Applied"

	// WorkDispatching says whether changes are delivered to the cluster.
	WorkDispatching = "Dispatching"

	// WorkDeletionHeld says that the Work is being deleted and its objects stay in
	// the cluster until a user confirms: too much would go at once, for no reason
	// that is known.
	WorkDeletionHeld = "DeletionHeld"

	// WorkDriftContested says whether somebody in the cluster changes the objects
	// back each time they are repaired. Repairs are slower as long as it is True.
	WorkDriftContested = "DriftContested"

	// WorkProgressing, WorkAvailable and WorkDegraded are reserved names.
	WorkProgressing = "Progressing"
	WorkAvailable   = "Available"
	WorkDegraded    = "Degraded"

	// WorkAppliedSuccessfulReason: the cluster has all manifests.
	WorkAppliedSuccessfulReason = "AppliedSuccessful"

	// WorkAppliedFailedReason: some manifest was refused.
	WorkAppliedFailedReason = "AppliedFailed"

	// WorkDispatchingReason: changes are delivered.
	WorkDispatchingReason = "Dispatching"

	// WorkSuspendDispatchingReason: the delivery is suspended.
	WorkSuspendDispatchingReason = "SuspendDispatching"

	// WorkMassDeletionStoppedReason: the deletion is part of a mass deletion that
	// nothing explains.
	WorkMassDeletionStoppedReason = "MassDeletionStopped"

	// WorkDriftContestedReason: repairs do not last.
	WorkDriftContestedReason = "RepairsDoNotLast"

	// WorkDriftSettledReason: the last repair has lasted.
	WorkDriftSettledReason = "RepairsLast"
)

// ConfirmDeletionsAnnotation on a Cluster lets deletions go on that were stopped:
// those that began by the time that it holds, in the form of RFC 3339.
const ConfirmDeletionsAnnotation = "work.karmada.io/confirm-deletions"

// Reasons of the events on Works. Those that end in Failed are of type Warning,
// the others of type Normal.
const (
	EventReasonSyncSucceed            = "SyncSucceed"
	EventReasonSyncFailed             = "SyncFailed"
	EventReasonWorkDispatching        = "WorkDispatching"
	EventReasonReflectStatusSucceed   = "ReflectStatusSucceed"
	EventReasonReflectStatusFailed    = "ReflectStatusFailed"
	EventReasonInterpretHealthSucceed = "InterpretHealthSucceed"
	EventReasonInterpretHealthFailed  = "InterpretHealthFailed"
)

// Reasons of events about repairs and deletions, of type Warning: on the Work,
// and on the Cluster.
const (
	EventReasonDriftContested      = "DriftContested"
	EventReasonMassDeletionStopped = "MassDeletionStopped"
)
