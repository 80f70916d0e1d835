package v1alpha1

// Conditions of clusters and their reasons.
const (
	// ClusterConditionReady says whether the cluster is reachable and healthy.
	// Unknown means that its agent has fallen silent.
	ClusterConditionReady = "Ready"

	// ClusterConditionAnswering says what was seen of the cluster last. It is there
	// only as long as Ready says something else and waits whether it lasts.
	ClusterConditionAnswering = "Answering"

	// ClusterConditionCompleteAPIEnablements says whether
	// status.apiEnablements lists all that the cluster serves.
	ClusterConditionCompleteAPIEnablements = "CompleteAPIEnablements"

	// ClusterConditionCredentialsValid says whether the cluster takes what it is
	// reached with, and for how long. It is absent as long as that is taken and does
	// not expire.
	ClusterConditionCredentialsValid = "CredentialsValid"

	// ClusterConditionIdentityMismatch says whether the address of a cluster leads to
	// another cluster than the one that was registered. It is Unknown when that cannot
	// be found out, and absent from clusters that always were the right ones.
	ClusterConditionIdentityMismatch = "IdentityMismatch"

	// IdentityMismatchReason: the namespace kube-system has another UID than spec.id.
	IdentityMismatchReason = "IdentityMismatch"

	// IdentityUnknownReason: the namespace kube-system cannot be read.
	IdentityUnknownReason = "IdentityUnknown"

	// IdentityProvenReason: the cluster is the one that was registered, again.
	IdentityProvenReason = "IdentityProven"

	// ClusterConditionWithinBounds says whether what the cluster sends is within the
	// bounds of the control plane. It is absent from clusters that never exceeded one.
	ClusterConditionWithinBounds = "WithinBounds"

	// BoundsKeptReason: no bound was exceeded in the last minutes.
	BoundsKeptReason = "BoundsKept"

	// BoundExceededReason: an answer or an event of the cluster exceeded a bound and was
	// not used.
	BoundExceededReason = "BoundExceeded"

	// ClusterConditionLeaving says what a cluster that was deleted waits for. It is
	// absent from clusters that stay.
	ClusterConditionLeaving = "Leaving"

	// LeavingWorksRemainReason: Works of the cluster are still to be deleted.
	LeavingWorksRemainReason = "WorksRemain"

	// LeavingBindingsRemainReason: bindings are still scheduled to the cluster.
	LeavingBindingsRemainReason = "BindingsRemain"

	// LeavingFinalizersRemainReason: finalizers of others hold the cluster.
	LeavingFinalizersRemainReason = "FinalizersRemain"

	// CredentialsValidReason: they are taken, and their end is far.
	CredentialsValidReason = "Valid"

	// CredentialsExpireSoonReason: they are taken, and end soon.
	CredentialsExpireSoonReason = "ExpiresSoon"

	// CredentialsExpiredReason: they have ended.
	CredentialsExpiredReason = "Expired"

	// CredentialsRefusedReason: the cluster does not take them.
	CredentialsRefusedReason = "Refused"

	// CredentialsMissingReason: their Secret is gone, and what it held is still used.
	CredentialsMissingReason = "Missing"

	// ServiceDomainNameResolutionReady is a condition of clusters and of their
	// nodes, set by a detector of its own. It is its reason for True as well.
	ServiceDomainNameResolutionReady = "ServiceDomainNameResolutionReady"

	// ClusterReasonReady: the cluster is reachable and healthy.
	ClusterReasonReady = "ClusterReady"

	// ClusterReasonLeaving: the cluster was deleted, and its Works are gone.
	ClusterReasonLeaving = "ClusterLeaving"

	// ClusterReasonNotReachable: the API server does not answer.
	ClusterReasonNotReachable = "ClusterNotReachable"

	// ClusterReasonNotReady: the API server answers that it is not healthy.
	ClusterReasonNotReady = "ClusterNotReady"

	// ClusterReasonStatusCollectionFailed: no client for the cluster could be
	// made from its spec and secrets.
	ClusterReasonStatusCollectionFailed = "StatusCollectionFailed"

	// ClusterReasonStatusUnknown: the agent has stopped reporting.
	ClusterReasonStatusUnknown = "ClusterStatusUnknown"

	// ClusterReasonStatusNeverUpdated: the agent has never reported.
	ClusterReasonStatusNeverUpdated = "ClusterStatusNeverUpdated"

	// APIEnablementsCompleteReason: the cluster answered for all groups.
	APIEnablementsCompleteReason = "Complete"

	// APIEnablementsPartialReason: the cluster answered for some groups.
	APIEnablementsPartialReason = "Partial"

	// APIEnablementsEmptyReason: the cluster answered for no group.
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
)

// ClusterControllerFinalizer keeps a Cluster until its Works and its execution
// namespace are gone.
const ClusterControllerFinalizer = "karmada.io/cluster-controller"

// KarmadaSystemLabel marks, with the value KarmadaSystemLabelValue, what the
// system has made for itself: namespaces, service accounts, secrets and RBAC.
const (
	KarmadaSystemLabel      = "karmada.io/system"
	KarmadaSystemLabelValue = "true"
)

// Keys and limits of what belongs to a cluster.
const (
	// SecretTokenKey is the key of the token in a cluster's Secret.
	SecretTokenKey = "token"

	// SecretCADataKey is the key of the CA certificates in a cluster's Secret.
	SecretCADataKey = "caBundle"

	// ClusterNameMaxLength is the longest name of a cluster, in characters.
	ClusterNameMaxLength = 48

	// ExecutionSpacePrefix, followed by the name of a cluster, is the namespace
	// of its Works.
	ExecutionSpacePrefix = "karmada-es-"

	// NamespaceKarmadaSystem is the namespace of Karmada's components.
	NamespaceKarmadaSystem = "karmada-system"

	// NamespaceKarmadaCluster is the namespace of the clusters' secrets and
	// leases.
	NamespaceKarmadaCluster = "karmada-cluster"
)

// CachedFromClusterAnnotation and QueryFromClusterAnnotation name the cluster
// that an object in an answer comes from: the first on objects from the search
// cache, the second on metrics.
const (
	CachedFromClusterAnnotation = "resource.karmada.io/cached-from-cluster"
	QueryFromClusterAnnotation  = "resource.karmada.io/query-from-cluster"
)

// RemedyActionTrafficControl asks traffic controllers to keep traffic away from
// the cluster.
const RemedyActionTrafficControl = "TrafficControl"

// Reasons of the events on clusters. Those that end in Succeed are of type
// Normal, the others of type Warning.
const (
	EventReasonCreateExecutionSpaceSucceed    = "CreateExecutionSpaceSucceed"
	EventReasonCreateExecutionSpaceFailed     = "CreateExecutionSpaceFailed"
	EventReasonRemoveExecutionSpaceSucceed    = "RemoveExecutionSpaceSucceed"
	EventReasonRemoveExecutionSpaceFailed     = "RemoveExecutionSpaceFailed"
	EventReasonClusterRemovalWaits            = "ClusterRemovalWaits"
	EventReasonTaintClusterSucceed            = "TaintClusterSucceed"
	EventReasonTaintClusterFailed             = "TaintClusterFailed"
	EventReasonSyncImpersonationConfigSucceed = "SyncImpersonationConfigSucceed"
	EventReasonSyncImpersonationConfigFailed  = "SyncImpersonationConfigFailed"
)
