package v1alpha1

// Labels and annotations of a policy on itself, on the objects that it has claimed and on the
// bindings of these objects.
const (
	// PropagationPolicyPermanentIDLabel holds the random UUID of a
	// PropagationPolicy. The policy and the objects that it claims have this label.
	PropagationPolicyPermanentIDLabel = "propagationpolicy.karmada.io/permanent-id"

	// ClusterPropagationPolicyPermanentIDLabel holds the random UUID of a
	// ClusterPropagationPolicy. The policy and the objects that it claims have this
	// label.
	ClusterPropagationPolicyPermanentIDLabel = "clusterpropagationpolicy.karmada.io/permanent-id"

	// PropagationPolicyNamespaceAnnotation holds the namespace of the claiming
	// PropagationPolicy.
	PropagationPolicyNamespaceAnnotation = "propagationpolicy.karmada.io/namespace"

	// PropagationPolicyNameAnnotation holds the name of the claiming
	// PropagationPolicy.
	PropagationPolicyNameAnnotation = "propagationpolicy.karmada.io/name"

	// ClusterPropagationPolicyAnnotation holds the name of the claiming
	// ClusterPropagationPolicy.
	ClusterPropagationPolicyAnnotation = "clusterpropagationpolicy.karmada.io/name"
)

// Annotations that record the effect of policies.
const (
	// AppliedPlacementAnnotation holds, on a binding, the JSON of the placement
	// that the last successful scheduling used.
	AppliedPlacementAnnotation = "policy.karmada.io/applied-placement"

	// AppliedOverrides holds, on a Work, a JSON array of the OverridePolicies
	// that were applied, with their overriders.
	AppliedOverrides = "policy.karmada.io/applied-overrides"

	// AppliedClusterOverrides holds, on a Work, a JSON array of the
	// ClusterOverridePolicies that were applied, with their overriders.
	AppliedClusterOverrides = "policy.karmada.io/applied-cluster-overrides"

	// IneffectiveOverrides holds, on a Work, the overriders that apply to the object
	// but had no effect, one in each line with the reason.
	IneffectiveOverrides = "policy.karmada.io/ineffective-overrides"
)

// Finalizers of policies.
const (
	// PropagationPolicyControllerFinalizer keeps a PropagationPolicy until it
	// has released the objects that it claimed.
	PropagationPolicyControllerFinalizer = "karmada.io/propagation-policy-controller"

	// ClusterPropagationPolicyControllerFinalizer keeps a
	// ClusterPropagationPolicy until it has released the objects that it claimed.
	ClusterPropagationPolicyControllerFinalizer = "karmada.io/cluster-propagation-policy-controller"
)

// NamespaceSkipAutoPropagationLabel on a Namespace of the control plane, with the value true
// in upper or lower case, means that Karmada does not create the Namespace in the clusters.
const NamespaceSkipAutoPropagationLabel = "namespace.karmada.io/skip-auto-propagation"

// Labels of the Works that contain the ResourceQuota of a FederatedResourceQuota.
const (
	// FederatedResourceQuotaNamespaceLabel holds the namespace of the
	// FederatedResourceQuota.
	FederatedResourceQuotaNamespaceLabel = "federatedresourcequota.karmada.io/namespace"

	// FederatedResourceQuotaNameLabel holds the name of the
	// FederatedResourceQuota.
	FederatedResourceQuotaNameLabel = "federatedresourcequota.karmada.io/name"
)

// FederatedResourceQuotaLedgerAnnotation holds, as JSON, the requests for ResourceBindings that the
// admission has admitted and that may not be stored yet. The admission writes it to the quota of a
// namespace whose name is the first in alphabetical order. Its entries expire after one minute.
const FederatedResourceQuotaLedgerAnnotation = "federatedresourcequota.karmada.io/ledger"

// DefaultSchedulerName is the scheduler of policies and bindings without a
// scheduler name.
const DefaultSchedulerName = "default-scheduler"

// Keys of FieldSelector expressions.
const (
	// ClusterFieldProvider is the provider of a cluster.
	ClusterFieldProvider = "provider"
	// ClusterFieldRegion is the region of a cluster.
	ClusterFieldRegion = "region"
	// ClusterFieldZone stands for the zones of a cluster.
	ClusterFieldZone = "zone"
)
