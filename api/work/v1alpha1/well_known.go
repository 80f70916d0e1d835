package v1alpha1

// Labels and annotations of a Work on itself, on its manifests and on the objects in the cluster.
const (
	// WorkPermanentIDLabel holds the random UUID of a Work. The Work, its
	// manifests and the objects in the cluster have this label.
	WorkPermanentIDLabel = "work.karmada.io/permanent-id"

	// WorkNamespaceAnnotation holds, on a manifest, the namespace of its Work.
	WorkNamespaceAnnotation = "work.karmada.io/namespace"

	// WorkNameAnnotation holds, on a manifest, the name of its Work.
	WorkNameAnnotation = "work.karmada.io/name"

	// RenderedFromAnnotation holds, on the Work of a binding, from what the Work was rendered: a
	// hash of the settings of the binding for the cluster, a slash, and the resourceVersion of
	// the template. It is written only together with another change of the Work.
	RenderedFromAnnotation = "work.karmada.io/rendered-from"

	// RecreateFinishedJobAnnotation is an annotation of a Job template. With the
	// value "true", a Complete or Failed Job that is deleted in a member cluster is
	// created and executed again. Without it, the Job stays deleted there.
	RecreateFinishedJobAnnotation = "work.karmada.io/recreate-finished-job"

	// NodePortAllocationAnnotation is an annotation of a Service template. With the
	// value NodePortAllocationMember, each member cluster allocates the node ports of
	// the Service. Without it, the members get the node ports of the template.
	NodePortAllocationAnnotation = "service.karmada.io/node-port-allocation"

	// NodePortAllocationMember is a value of NodePortAllocationAnnotation.
	NodePortAllocationMember = "member"

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
	// WorkApplied reports whether the cluster has all manifests in their present
	// form.
	WorkApplied = "Applied"

	// WorkDispatching reports whether changes are delivered to the cluster.
	WorkDispatching = "Dispatching"

	// WorkDeletionHeld reports that the Work is being deleted and its objects stay in
	// the cluster until a user confirms the deletion. The deletion is part of a mass
	// deletion without a known reason, or the reason cannot be read.
	WorkDeletionHeld = "DeletionHeld"

	// WorkStatusTruncated reports that the status of an object in the cluster is too large to be
	// reflected completely. It is absent from other Works.
	WorkStatusTruncated = "StatusTruncated"

	// WorkStatusTooLargeReason: a status is larger than the limit.
	WorkStatusTooLargeReason = "StatusTooLarge"

	// WorkStatusInterpreted reports that a script or webhook cannot interpret the status or the
	// health of an object in the cluster. It is absent from other Works.
	WorkStatusInterpreted = "StatusInterpreted"

	// WorkInterpreterFailedReason: a rule of the interpreter returned an error. The message
	// names the script with its line, or the webhook.
	WorkInterpreterFailedReason = "InterpreterFailed"

	// WorkDriftConflict reports whether another client in the cluster changes the objects
	// back each time they are repaired. Repairs have a longer delay while it is True.
	WorkDriftConflict = "DriftConflict"

	// WorkProgressing, WorkAvailable and WorkDegraded are reserved names.
	WorkProgressing = "Progressing"
	WorkAvailable   = "Available"
	WorkDegraded    = "Degraded"

	// WorkAppliedSuccessfulReason: the cluster has all manifests.
	WorkAppliedSuccessfulReason = "AppliedSuccessful"

	// WorkAppliedFailedReason: some manifest was rejected.
	WorkAppliedFailedReason = "AppliedFailed"

	// WorkMemberForbidsReason: Karmada lacks a right in the cluster. The message of
	// Applied and of StatusCollected names the rule and the role to add it to.
	WorkMemberForbidsReason = "MemberForbids"

	// WorkStatusCollected reports whether the status of the objects is read from the
	// cluster and drift is repaired. It is absent until the watch of the objects
	// fails.
	WorkStatusCollected = "StatusCollected"

	// WorkStatusCollectedReason: the objects are watched again.
	WorkStatusCollectedReason = "Watched"

	// WorkDispatchingReason: changes are delivered.
	WorkDispatchingReason = "Dispatching"

	// WorkSuspendDispatchingReason: the delivery is suspended.
	WorkSuspendDispatchingReason = "SuspendDispatching"

	// WorkSuspendedReason: the binding no longer requires the Work in the cluster, and the
	// dispatching to the cluster is suspended.
	WorkSuspendedReason = "DispatchingSuspended"

	// WorkNotReplacedReason: no change by a user explains the deletion, and no healthy copies in
	// other clusters replace the copy.
	WorkNotReplacedReason = "NotReplaced"

	// WorkDeletionBudgetExceededReason: more templates lose their last copy than the deletion budget
	// allows.
	WorkDeletionBudgetExceededReason = "DeletionBudgetExceeded"

	// WorkNamespaceInUseReason: the Work delivers a Namespace that contains objects whose deletion is
	// held or not decided yet.
	WorkNamespaceInUseReason = "NamespaceInUse"

	// WorkRestoreNotConfirmedReason: the control plane is restored from a backup, and no user has
	// confirmed the restore yet.
	WorkRestoreNotConfirmedReason = "RestoreNotConfirmed"

	// WorkClusterChangedReason: the cluster no longer matches the placements of many
	// workloads since its labels, provider, region or zones changed.
	WorkClusterChangedReason = "ClusterChanged"

	// WorkBindingMissingReason: the binding was deleted, but its template was not.
	WorkBindingMissingReason = "BindingMissing"

	// WorkTemplateUnknownReason: the binding is gone, and its template cannot be read.
	WorkTemplateUnknownReason = "TemplateUnknown"

	// WorkTemplateKindNotServedReason: the binding is gone, and the control plane does not
	// serve the kind of its template.
	WorkTemplateKindNotServedReason = "TemplateKindNotServed"

	// WorkKindNotServedReason: discovery of the cluster does not show whether it serves the kind of
	// an object. So the object may still exist in the cluster.
	WorkKindNotServedReason = "KindNotServed"

	// WorkDriftConflictReason: repaired objects are changed again.
	WorkDriftConflictReason = "RepairsDoNotLast"

	// WorkDriftSettledReason: the last repair was not changed back.
	WorkDriftSettledReason = "RepairsLast"
)

// ConfirmDeletionsAnnotation on a Cluster confirms held deletions that began before the
// time in its value, in RFC 3339 format.
const ConfirmDeletionsAnnotation = "work.karmada.io/confirm-deletions"

// HeldDeletionAnnotation on a Work holds the decision of a user about the held deletion of the Work:
// ConfirmHeldDeletion or RejectHeldDeletion, a slash, and the UID of the Work.
const (
	HeldDeletionAnnotation = "work.karmada.io/held-deletion"

	// ConfirmHeldDeletion deletes the objects of the Work.
	ConfirmHeldDeletion = "confirm"

	// RejectHeldDeletion releases the Work and keeps its objects in the cluster.
	RejectHeldDeletion = "reject"
)

// DeletionVerdictsAnnotation on an execution namespace means that the control plane decides
// about deletions: an agent deletes the objects of a deleted Work only if the Work has the
// DeletionAllowedAnnotation. Agents cannot write the namespace.
const (
	DeletionVerdictsAnnotation = "work.karmada.io/deletion-verdicts"
	DeletionVerdictsRequired   = "required"
)

// DeletionAllowedAnnotation on a Work that is being deleted holds the UID of the Work and
// the identity of the epoch, with a slash between them. The control plane writes it when
// the agent may delete the objects of the Work. It has no effect in another epoch.
const DeletionAllowedAnnotation = "work.karmada.io/deletion-allowed"

// Reasons of the events on Works. The comments have a fixed form, from which the reference of
// events is generated.
const (
	// EventReasonSyncSucceed, of type Normal, on the Work: the cluster has all manifests: after an
	// earlier failure, or each time with --propagation-events=all.
	EventReasonSyncSucceed = "SyncSucceed"

	// EventReasonSyncFailed, of type Warning, on the Work and the templates of its manifests: the
	// cluster rejected a manifest, does not respond, or does not exist; an agent records it on the
	// Work only.
	EventReasonSyncFailed = "SyncFailed"

	// EventReasonWorkDispatching, of type Normal, on the Work: the delivery of changes was
	// suspended or resumed, or is enabled with --propagation-events=all.
	EventReasonWorkDispatching = "WorkDispatching"

	// EventReasonReflectStatusSucceed, of type Normal, on the Work: the status of the objects is
	// read; only with --propagation-events=all.
	EventReasonReflectStatusSucceed = "ReflectStatusSucceed"

	// EventReasonReflectStatusFailed, of type Warning, on the Work: the status of an object could
	// not be read or written.
	EventReasonReflectStatusFailed = "ReflectStatusFailed"

	// EventReasonInterpretHealthSucceed, of type Normal, on the Work: the health of an object has
	// been determined. The event is recorded only with --propagation-events=all.
	EventReasonInterpretHealthSucceed = "InterpretHealthSucceed"

	// EventReasonInterpretHealthFailed, of type Warning, on the Work: the health of an object could
	// not be determined.
	EventReasonInterpretHealthFailed = "InterpretHealthFailed"
)

// Reasons of the events about repairs and deletions.
const (
	// EventReasonDriftConflict, of type Warning, on the Work and the templates of its manifests:
	// another client in the cluster changes an object back each time it is repaired.
	EventReasonDriftConflict = "DriftConflict"

	// EventReasonDeletionHeld, of type Warning, on the Work or the Cluster: deletions are held, as
	// the condition DeletionHeld of each Work explains.
	EventReasonDeletionHeld = "DeletionHeld"

	// EventReasonEpochUnreadable, of type Warning, on the Cluster: the agent of the cluster deletes
	// no objects, because it is not allowed to read the epoch of the control plane.
	EventReasonEpochUnreadable = "EpochUnreadable"

	// EventReasonDeletionAbandoned, of type Warning, on the Cluster: the objects of a deleted Work
	// stay in the cluster, because the agent lost its permissions when the execution namespace was deleted.
	EventReasonDeletionAbandoned = "DeletionAbandoned"
)

// RenamedConditions are the types of conditions that earlier releases wrote to Works under other names.
// They are removed when the status of a Work is written.
var RenamedConditions = []string{"StatusCut", "DriftContested"}
