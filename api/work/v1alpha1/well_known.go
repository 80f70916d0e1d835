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
	// that is known, or the reason cannot be read.
	WorkDeletionHeld = "DeletionHeld"

	// WorkStatusCut says that the status of an object in the cluster is too large to be
	// reflected whole. It is absent from other Works.
	WorkStatusCut = "StatusCut"

	// WorkStatusTooLargeReason: a status is larger than the limit.
	WorkStatusTooLargeReason = "StatusTooLarge"

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

	// WorkMemberForbidsReason: Karmada lacks a right in the cluster. The message of
	// Applied and of StatusCollected names the rule and the role to add it to.
	WorkMemberForbidsReason = "MemberForbids"

	// WorkStatusCollected says whether the status of the objects is read from the
	// cluster and changes there are undone. It is absent as long as nothing keeps
	// Karmada from watching them.
	WorkStatusCollected = "StatusCollected"

	// WorkStatusCollectedReason: the objects are watched, again.
	WorkStatusCollectedReason = "Watched"

	// WorkDispatchingReason: changes are delivered.
	WorkDispatchingReason = "Dispatching"

	// WorkSuspendDispatchingReason: the delivery is suspended.
	WorkSuspendDispatchingReason = "SuspendDispatching"

	// WorkMassDeletionStoppedReason: the deletion is part of a mass deletion that
	// nothing explains.
	WorkMassDeletionStoppedReason = "MassDeletionStopped"

	// WorkRestoreNotConfirmedReason: the control plane is restored from a backup, and no
	// user has confirmed that yet.
	WorkRestoreNotConfirmedReason = "RestoreNotConfirmed"

	// WorkFleetDeletionStoppedReason: the deletion is one of many in many clusters that
	// nothing explains.
	WorkFleetDeletionStoppedReason = "FleetDeletionStopped"

	// WorkClusterChangedReason: the cluster does not match the placements of many
	// workloads since its labels, provider, region or zones changed.
	WorkClusterChangedReason = "ClusterChanged"

	// WorkBindingMissingReason: the binding was deleted, and its template was not.
	WorkBindingMissingReason = "BindingMissing"

	// WorkTemplateUnknownReason: the binding is gone, and its template cannot be read.
	WorkTemplateUnknownReason = "TemplateUnknown"

	// WorkTemplateKindNotServedReason: the binding is gone, and the control plane does not
	// serve the kind of its template.
	WorkTemplateKindNotServedReason = "TemplateKindNotServed"

	// WorkKindNotServedReason: the cluster does not say whether it serves the kind of an
	// object, so that the object may exist.
	WorkKindNotServedReason = "KindNotServed"

	// WorkDriftContestedReason: repairs do not last.
	WorkDriftContestedReason = "RepairsDoNotLast"

	// WorkDriftSettledReason: the last repair has lasted.
	WorkDriftSettledReason = "RepairsLast"
)

// ConfirmDeletionsAnnotation on a Cluster lets deletions go on that were stopped:
// those that began by the time that it holds, in the form of RFC 3339.
const ConfirmDeletionsAnnotation = "work.karmada.io/confirm-deletions"

// DeletionVerdictsAnnotation on an execution namespace says that the control plane decides
// about deletions: an agent deletes the objects of a deleted Work only if that has the
// DeletionAllowedAnnotation. Agents cannot write the namespace.
const (
	DeletionVerdictsAnnotation = "work.karmada.io/deletion-verdicts"
	DeletionVerdictsRequired   = "required"
)

// DeletionAllowedAnnotation on a Work that is being deleted holds the UID of the Work and
// the identity of the epoch, with a slash between them. The control plane writes it when
// the agent may delete the objects of the Work. In another epoch it allows nothing.
const DeletionAllowedAnnotation = "work.karmada.io/deletion-allowed"

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
	EventReasonDeletionHeld        = "DeletionHeld"
)
