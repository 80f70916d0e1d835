package v1alpha1

// Conditions of clusters and their reasons.
const (
	// ClusterConditionReady reports whether the cluster is reachable and healthy.
	// Unknown means that its agent no longer reports.
	ClusterConditionReady = "Ready"

	// ClusterConditionResponding reports the result of the last probe. It is present
	// only while it differs from Ready and the threshold for a change of Ready is not reached.
	ClusterConditionResponding = "Responding"
	// RenamedResponding is the name of the condition Responding in earlier releases.
	RenamedResponding = "Answering"

	// ClusterConditionCompleteAPIEnablements reports whether
	// status.apiEnablements lists all APIs that the cluster serves.
	ClusterConditionCompleteAPIEnablements = "CompleteAPIEnablements"

	// ClusterConditionCredentialsValid reports whether the cluster accepts the credentials
	// of the control plane, and when they expire. It is absent while they are accepted and do
	// not expire.
	ClusterConditionCredentialsValid = "CredentialsValid"

	// ClusterConditionIdentityMismatch reports whether the address of a cluster leads to
	// another cluster than the registered one. It is Unknown if the identity cannot be
	// read, and absent from clusters that never had a mismatch.
	ClusterConditionIdentityMismatch = "IdentityMismatch"

	// IdentityMismatchReason: the namespace kube-system has another UID than spec.id.
	IdentityMismatchReason = "IdentityMismatch"

	// IdentityUnknownReason: the namespace kube-system cannot be read.
	IdentityUnknownReason = "IdentityUnknown"

	// IdentityProvenReason: the address leads to the registered cluster again.
	IdentityProvenReason = "IdentityProven"

	// ClusterConditionWithinBounds reports whether the responses of the cluster are within the
	// bounds of the control plane. It is absent from clusters that never exceeded a bound.
	ClusterConditionWithinBounds = "WithinBounds"

	// BoundsKeptReason: no bound was exceeded in the last minutes.
	BoundsKeptReason = "BoundsKept"

	// BoundExceededReason: a response or an event of the cluster exceeded a bound and was
	// not used.
	BoundExceededReason = "BoundExceeded"

	// ClusterConditionTaintsEvict reports whether NoExecute taints evict workloads. Only clusters
	// with a NoExecute taint have it.
	ClusterConditionTaintsEvict = "TaintsEvict"

	// TaintEvictionEnabledReason: the control plane evicts workloads that do not tolerate a
	// NoExecute taint.
	TaintEvictionEnabledReason = "EvictionEnabled"

	// TaintEvictionDisabledReason: the control plane runs without flags that evictions need.
	TaintEvictionDisabledReason = "EvictionDisabled"

	// ClusterConditionLeaving reports what blocks the deletion of the cluster. It is
	// absent from clusters that are not being deleted.
	ClusterConditionLeaving = "Leaving"

	// LeavingWorksRemainReason: Works of the cluster are not deleted yet.
	LeavingWorksRemainReason = "WorksRemain"

	// LeavingBindingsRemainReason: bindings are still scheduled to the cluster.
	LeavingBindingsRemainReason = "BindingsRemain"

	// LeavingFinalizersRemainReason: finalizers of other controllers block the deletion.
	LeavingFinalizersRemainReason = "FinalizersRemain"

	// CredentialsValidReason: the credentials are accepted and do not expire soon.
	CredentialsValidReason = "Valid"

	// CredentialsExpireSoonReason: the credentials are accepted but expire soon.
	CredentialsExpireSoonReason = "ExpiresSoon"

	// CredentialsExpiredReason: the credentials have expired.
	CredentialsExpiredReason = "Expired"

	// CredentialsRefusedReason: the cluster rejects the credentials.
	CredentialsRefusedReason = "Refused"

	// CredentialsMissingReason: the Secret is missing, and its last known content is still used.
	CredentialsMissingReason = "Missing"

	// ServiceDomainNameResolutionReady is a condition of clusters and of their
	// nodes, set by a separate detector. The name is also its reason for True.
	ServiceDomainNameResolutionReady = "ServiceDomainNameResolutionReady"

	// ClusterReasonReady: the cluster is reachable and healthy.
	ClusterReasonReady = "ClusterReady"

	// ClusterReasonLeaving: the cluster was deleted, and its Works are gone.
	ClusterReasonLeaving = "ClusterLeaving"

	// ClusterReasonNotReachable: the API server does not answer.
	ClusterReasonNotReachable = "ClusterNotReachable"

	// ClusterReasonNotReady: the health endpoint of the API server reports an error.
	ClusterReasonNotReady = "ClusterNotReady"

	// ClusterReasonStatusCollectionFailed: no client for the cluster could be
	// created from its spec and secrets.
	ClusterReasonStatusCollectionFailed = "StatusCollectionFailed"

	// ClusterReasonStatusUnknown: the agent has stopped reporting.
	ClusterReasonStatusUnknown = "ClusterStatusUnknown"

	// ClusterReasonStatusNeverUpdated: the agent has never reported.
	ClusterReasonStatusNeverUpdated = "ClusterStatusNeverUpdated"

	// APIEnablementsCompleteReason: discovery succeeded for all groups.
	APIEnablementsCompleteReason = "Complete"

	// APIEnablementsPartialReason: discovery succeeded for some groups.
	APIEnablementsPartialReason = "Partial"

	// APIEnablementsEmptyReason: discovery succeeded for no group.
	APIEnablementsEmptyReason = "Empty"

	// ServiceDomainNameResolutionFailedReason: names of services cannot be
	// resolved in the cluster.
	ServiceDomainNameResolutionFailedReason = "ServiceDomainNameResolutionFailed"
)

// Keys of the cluster taints that Karmada sets itself, with the effect
// NoSchedule.
const (
	// TaintClusterUnschedulable is set by cordon and removed by uncordon.
	TaintClusterUnschedulable = "cluster.karmada.io/unschedulable"

	// TaintClusterNotReady is set while Ready is False or absent.
	TaintClusterNotReady = "cluster.karmada.io/not-ready"

	// TaintClusterUnreachable is set while Ready is Unknown.
	TaintClusterUnreachable = "cluster.karmada.io/unreachable"

	// TaintClusterUnapproved is set on the Cluster that an agent creates, if administrators must
	// approve such Clusters. An administrator removes it.
	TaintClusterUnapproved = "cluster.karmada.io/unapproved"
)

// ClusterControllerFinalizer keeps a Cluster until its Works and its execution
// namespace are gone.
const ClusterControllerFinalizer = "karmada.io/cluster-controller"

// KarmadaSystemLabel with the value KarmadaSystemLabelValue is the label of objects that
// Karmada creates for itself: namespaces, service accounts, secrets and RBAC.
const (
	KarmadaSystemLabel      = "karmada.io/system"
	KarmadaSystemLabelValue = "true"
)

// Names, keys and limits of the objects of a cluster.
const (
	// SecretTokenKey is the key of the token in a cluster's Secret.
	SecretTokenKey = "token"

	// SecretCADataKey is the key of the CA certificates in a cluster's Secret.
	SecretCADataKey = "caBundle"

	// ClusterNameMaxLength is the longest name of a cluster, in characters.
	ClusterNameMaxLength = 48

	// ExecutionNamespacePrefix, followed by the name of a cluster, is the namespace
	// of its Works.
	ExecutionNamespacePrefix = "karmada-es-"

	// NamespaceKarmadaSystem is the namespace of Karmada's components.
	NamespaceKarmadaSystem = "karmada-system"

	// NamespaceKarmadaCluster is the namespace of the clusters' secrets and
	// leases.
	NamespaceKarmadaCluster = "karmada-cluster"
)

// CachedFromClusterAnnotation and QueryFromClusterAnnotation name the cluster
// from which an object in a response comes: the first on objects from the search
// cache, the second on metrics.
const (
	CachedFromClusterAnnotation = "resource.karmada.io/cached-from-cluster"
	QueryFromClusterAnnotation  = "resource.karmada.io/query-from-cluster"
)

// RemedyActionTrafficControl requests traffic controllers to keep traffic away from
// the cluster.
const RemedyActionTrafficControl = "TrafficControl"

// Reasons of the events on clusters. The comments have a fixed form, from which the reference of
// events is generated.
const (
	// EventReasonCreateExecutionSpaceSucceed, of type Normal, on the Cluster: the execution
	// namespace was created.
	EventReasonCreateExecutionSpaceSucceed = "CreateExecutionSpaceSucceed"

	// EventReasonCreateExecutionSpaceFailed, of type Warning, on the Cluster: the execution
	// namespace could not be created.
	EventReasonCreateExecutionSpaceFailed = "CreateExecutionSpaceFailed"

	// EventReasonRemoveExecutionSpaceSucceed, of type Normal, on the Cluster: the execution
	// namespace of a deleted Cluster was removed.
	EventReasonRemoveExecutionSpaceSucceed = "RemoveExecutionSpaceSucceed"

	// EventReasonRemoveExecutionSpaceFailed, of type Warning, on the Cluster: the execution
	// namespace could not be removed.
	EventReasonRemoveExecutionSpaceFailed = "RemoveExecutionSpaceFailed"

	// EventReasonClusterRemovalWaits, of type Warning, on the Cluster: the removal of the Cluster
	// waits for the named Work or for the named bindings.
	EventReasonClusterRemovalWaits = "ClusterRemovalWaits"

	// EventReasonTaintClusterSucceed, of type Normal, on the Cluster: the taints changed, because
	// of the health of the cluster or of a ClusterTaintPolicy.
	EventReasonTaintClusterSucceed = "TaintClusterSucceed"

	// EventReasonTaintClusterFailed, of type Warning, on the Cluster: the taints could not be
	// changed.
	EventReasonTaintClusterFailed = "TaintClusterFailed"

	// EventReasonSyncImpersonationConfigSucceed, of type Normal, on the Cluster: the permissions of
	// the control plane to act for users in the cluster changed.
	EventReasonSyncImpersonationConfigSucceed = "SyncImpersonationConfigSucceed"

	// EventReasonSyncImpersonationConfigFailed, of type Warning, on the Cluster: the permissions
	// of the control plane to act for users in the cluster could not be updated.
	EventReasonSyncImpersonationConfigFailed = "SyncImpersonationConfigFailed"

	// EventReasonAgentPermissionsRemoved, of type Warning, on the Cluster: an agent's permissions were
	// removed that registered earlier under the name of this Cluster.
	EventReasonAgentPermissionsRemoved = "AgentPermissionsRemoved"
)
