package conditions

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	operatorv1alpha1 "karmada.io/karmada/api/operator/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Row describes a condition that this project writes.
type Row struct {
	// Kinds are the kinds of objects that have the condition.
	Kinds  []string
	Type   string
	Status metav1.ConditionStatus
	Reason string
	// When describes the situation in which the condition is written. The documentation contains this
	// text.
	When string
}

// Table returns every condition that this project writes, sorted by kind. It does not contain
// conditions that the API reserves but that are never written.
func Table() []Row {
	var table []Row
	for _, rows := range [][]Row{clusterRows(), requestRows(), workRows(), bindingRows(), templateRows(), serviceRows(), scalingRows(),
		operatorRows(), registryRows()} {
		table = append(table, rows...)
	}
	return table
}

// IsKnown reports whether a condition is in the table.
func IsKnown(kind string, c metav1.Condition) bool {
	for _, row := range Table() {
		if row.Type != c.Type || row.Status != c.Status || row.Reason != c.Reason {
			continue
		}
		if slices.Contains(row.Kinds, kind) {
			return true
		}
	}
	return false
}

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

func clusterRows() []Row {
	kinds := []string{"Cluster"}
	ready, complete := clusterv1alpha1.ClusterConditionReady, clusterv1alpha1.ClusterConditionCompleteAPIEnablements
	responding, credentials := clusterv1alpha1.ClusterConditionResponding, clusterv1alpha1.ClusterConditionCredentialsValid
	leaving, identity := clusterv1alpha1.ClusterConditionLeaving, clusterv1alpha1.ClusterConditionIdentityMismatch
	return []Row{
		{kinds, ready, yes, clusterv1alpha1.ClusterReasonReady, "the health endpoint of the member responds with ok"},
		{kinds, ready, no, clusterv1alpha1.ClusterReasonNotReachable, "the member cannot be reached"},
		{kinds, ready, no, clusterv1alpha1.ClusterReasonNotReady, "the health endpoint responds, but not with ok"},
		{kinds, ready, no, clusterv1alpha1.ClusterReasonStatusCollectionFailed, "no client for the member can be made from its spec and secrets"},
		{kinds, ready, no, clusterv1alpha1.ClusterReasonLeaving, "the cluster was deleted, and its Works are gone"},
		{kinds, leaving, yes, clusterv1alpha1.LeavingWorksRemainReason, "the cluster was deleted; Works are still to be deleted"},
		{kinds, leaving, yes, clusterv1alpha1.LeavingBindingsRemainReason, "the cluster was deleted; bindings are still scheduled to it"},
		{kinds, leaving, yes, clusterv1alpha1.LeavingFinalizersRemainReason, "the cluster was deleted; finalizers of other controllers remain"},
		{kinds, ready, unknown, clusterv1alpha1.ClusterReasonStatusUnknown, "the member stopped reporting"},
		{kinds, ready, unknown, clusterv1alpha1.ClusterReasonStatusNeverUpdated, "the member has never reported"},
		{kinds, responding, yes, clusterv1alpha1.ClusterReasonReady, "the member responds again; Ready follows if that lasts"},
		{kinds, responding, no, clusterv1alpha1.ClusterReasonNotReachable, "the member was not reached; Ready follows if that lasts"},
		{kinds, responding, no, clusterv1alpha1.ClusterReasonNotReady,
			"the health endpoint responded, but not with ok; Ready follows if that lasts"},
		{kinds, responding, no, clusterv1alpha1.ClusterReasonStatusCollectionFailed, "no client could be made; Ready follows if that lasts"},
		{kinds, credentials, yes, clusterv1alpha1.CredentialsValidReason, "the member accepts the token, whose expiry is distant or unknown"},
		{kinds, credentials, yes, clusterv1alpha1.CredentialsExpireSoonReason,
			"the last tenth of the validity of the token or CA certificate, at most 30 days"},
		{kinds, credentials, no, clusterv1alpha1.CredentialsExpiredReason, "the token or the CA certificate has expired"},
		{kinds, credentials, no, clusterv1alpha1.CredentialsRefusedReason, "the member rejects the token"},
		{kinds, credentials, no, clusterv1alpha1.CredentialsMissingReason,
			"the Secret is gone; the credentials that it held are used until the next restart"},
		{kinds, ready, no, clusterv1alpha1.IdentityMismatchReason, "the address leads to another cluster than the registered one"},
		{kinds, ready, no, clusterv1alpha1.IdentityUnknownReason, "the cluster behind the address could not be identified"},
		{kinds, responding, no, clusterv1alpha1.IdentityMismatchReason, "the address leads to another cluster; Ready follows if that lasts"},
		{kinds, responding, no, clusterv1alpha1.IdentityUnknownReason, "the cluster could not be identified; Ready follows if that lasts"},
		{kinds, identity, yes, clusterv1alpha1.IdentityMismatchReason,
			"the address leads to another cluster; nothing is written or deleted there"},
		{kinds, identity, unknown, clusterv1alpha1.IdentityUnknownReason,
			"Namespace kube-system of the member cannot be read; nothing is written there"},
		{kinds, identity, no, clusterv1alpha1.IdentityProvenReason, "the address leads to the registered cluster again"},
		{kinds, clusterv1alpha1.ClusterConditionWithinBounds, yes, clusterv1alpha1.BoundsKeptReason,
			"the member exceeded a bound before, and no bound since"},
		{kinds, clusterv1alpha1.ClusterConditionWithinBounds, no, clusterv1alpha1.BoundExceededReason,
			"a response or an event of the member exceeded a bound and was not used"},
		{kinds, clusterv1alpha1.ClusterConditionTaintsEvict, yes, clusterv1alpha1.TaintEvictionEnabledReason,
			"the cluster has a NoExecute taint, which evicts workloads"},
		{kinds, clusterv1alpha1.ClusterConditionTaintsEvict, no, clusterv1alpha1.TaintEvictionDisabledReason,
			"the cluster has a NoExecute taint, but evictions are off: the message names the missing flags"},
		{kinds, complete, yes, clusterv1alpha1.APIEnablementsCompleteReason, "all API groups of the member were read"},
		{kinds, complete, no, clusterv1alpha1.APIEnablementsPartialReason, "some API groups of the member could not be read"},
		{kinds, complete, no, clusterv1alpha1.APIEnablementsEmptyReason, "no API group of the member could be read"},
	}
}

// requestRows returns the conditions of agents' CertificateSigningRequests.
func requestRows() []Row {
	kinds := []string{"CertificateSigningRequest"}
	notApproved := clusterv1alpha1.AgentNotApproved
	return []Row{
		{kinds, string(certificatesv1.CertificateApproved), yes, clusterv1alpha1.AgentReasonAutoApproved,
			"the controller approved the certificate of an agent"},
		{kinds, clusterv1alpha1.AgentPermissionsGranted, yes, clusterv1alpha1.AgentReasonApprovedByOthers,
			"an administrator approved the certificate, and the agent got its permissions"},
		{kinds, notApproved, yes, clusterv1alpha1.AgentReasonNotAllowed, "the requester may not request certificates of agents"},
		{kinds, notApproved, yes, clusterv1alpha1.AgentReasonInvalidName, "no cluster with an agent can have the requested name"},
		{kinds, notApproved, yes, clusterv1alpha1.AgentReasonNameTaken, "a Cluster has the requested name"},
		{kinds, notApproved, yes, clusterv1alpha1.AgentReasonCertificateIssued, "another requester has a certificate for the requested name"},
		{kinds, notApproved, yes, clusterv1alpha1.AgentReasonRequestTimedOut, "the requester stopped waiting before the request was approved"},
		{kinds, notApproved, yes, clusterv1alpha1.AgentReasonNotRegistered, "the agent renews its certificate, and its Cluster does not exist"},
		{kinds, notApproved, yes, clusterv1alpha1.AgentReasonNamespaceNotPrepared,
			"the namespace for the Secrets of the cluster is not prepared for agents"},
		{kinds, notApproved, yes, clusterv1alpha1.AgentReasonOutOfScope,
			"the scope of the token does not allow the request, or the token was deleted"},
		{kinds, notApproved, yes, clusterv1alpha1.AgentReasonGeneratorUnlimited, "the user that creates the roles of agents has all permissions"},
	}
}

func workRows() []Row {
	kinds := []string{"Work"}
	return []Row{
		{kinds, workv1alpha1.WorkApplied, yes, workv1alpha1.WorkAppliedSuccessfulReason, "the member holds every manifest"},
		{kinds, workv1alpha1.WorkApplied, no, workv1alpha1.WorkAppliedFailedReason, "a manifest could not be applied"},
		{kinds, workv1alpha1.WorkApplied, no, workv1alpha1.WorkMemberForbidsReason,
			"Karmada lacks a permission in the member; the message names it"},
		{kinds, workv1alpha1.WorkStatusCollected, no, workv1alpha1.WorkMemberForbidsReason, "Karmada may not watch a kind in the member"},
		{kinds, workv1alpha1.WorkStatusCollected, yes, workv1alpha1.WorkStatusCollectedReason, "Karmada may watch all kinds again"},
		{kinds, workv1alpha1.WorkDispatching, yes, workv1alpha1.WorkDispatchingReason, "changes are delivered to the member"},
		{kinds, workv1alpha1.WorkDispatching, no, workv1alpha1.WorkSuspendDispatchingReason, "suspendDispatching stops the delivery of changes"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkNotReplacedReason,
			"no change by a user explains the deletion, and no healthy copies in other clusters replace the objects"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkNamespaceInUseReason,
			"the Work delivers a Namespace that contains objects whose deletion is held or not decided yet"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkDeletionBudgetExceededReason,
			"more templates lose their last copy than the deletion budget allows"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkSuspendedReason,
			"the binding no longer requires the objects, and the dispatching to the cluster is suspended"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkRestoreNotConfirmedReason,
			"the control plane is restored from a backup, and no user has confirmed that yet"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkClusterChangedReason,
			"labels, provider, region or zones of the cluster changed, and exclude many workloads"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkBindingMissingReason, "the binding was deleted, and its template exists"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkTemplateUnknownReason,
			"the binding is gone, and its template cannot be read"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkTemplateKindNotServedReason,
			"the binding is gone, and the control plane does not serve the kind of its template"},
		{kinds, workv1alpha1.WorkDeletionHeld, yes, workv1alpha1.WorkKindNotServedReason,
			"the member may store objects of a kind that it does not serve"},
		{kinds, workv1alpha1.WorkDriftConflict, yes, workv1alpha1.WorkDriftConflictReason, "a client in the member undoes every repair"},
		{kinds, workv1alpha1.WorkStatusTruncated, yes, workv1alpha1.WorkStatusTooLargeReason,
			"a status of the member was too large, and was reflected in part"},
		{kinds, workv1alpha1.WorkStatusInterpreted, no, workv1alpha1.WorkInterpreterFailedReason,
			"a script or webhook could not interpret the status or the health of an object in the member"},
		{kinds, workv1alpha1.WorkDriftConflict, no, workv1alpha1.WorkDriftSettledReason, "repairs are not undone any more"},
	}
}

func bindingRows() []Row {
	kinds := []string{"ResourceBinding", "ClusterResourceBinding"}
	return []Row{
		{kinds, workv1alpha2.Scheduled, yes, workv1alpha2.BindingReasonSuccess, "the clusters are chosen"},
		{kinds, workv1alpha2.Scheduled, no, workv1alpha2.BindingReasonNoClusterFit, "no cluster passes the filters"},
		{kinds, workv1alpha2.Scheduled, no, workv1alpha2.BindingReasonUnschedulable, "the clusters that fit have no capacity"},
		{kinds, workv1alpha2.Scheduled, no, workv1alpha2.BindingReasonQuotaExceeded, "a FederatedResourceQuota rejects the replicas"},
		{kinds, workv1alpha2.Scheduled, no, workv1alpha2.BindingReasonSchedulerError, "scheduling failed and is retried"},
		{kinds, workv1alpha2.Scheduled, no, workv1alpha2.BindingReasonSchedulerNotReporting,
			"no scheduler with the name in spec.schedulerName has written a status"},
		{kinds, workv1alpha2.Scheduled, no, workv1alpha2.BindingReasonClusterRemoved,
			"a cluster was removed, and no scheduler places its replicas elsewhere"},
		{kinds, workv1alpha2.FullyApplied, yes, workv1alpha2.FullyAppliedSuccessReason, "every chosen cluster holds the template"},
		{kinds, workv1alpha2.FullyApplied, no, workv1alpha2.FullyAppliedFailedReason, "a chosen cluster does not hold it, or not yet"},
		{kinds, workv1alpha2.DeletionSuspended, yes, workv1alpha2.DeletionSuspendedReason,
			"the dispatching to clusters that the binding no longer needs is suspended, and their objects stay"},
		{kinds, workv1alpha2.EvictionHeld, yes, workv1alpha2.EvictionHeldReasonNotReplaced,
			"the grace period of an eviction is over, and no healthy copy replaces the old one, which is kept"},
		{kinds, workv1alpha2.EvictionHeld, yes, workv1alpha2.EvictionHeldReasonNotPurged,
			"the grace period of an eviction is over, and the old copy, which must be deleted first, still exists"},
		{kinds, workv1alpha2.TemplateInterpreted, no, workv1alpha2.InterpreterFailedReason,
			"a script or webhook could not interpret the replicas of the template; the spec of the binding does not change"},
		{kinds, workv1alpha2.TemplateInterpreted, yes, workv1alpha2.InterpretedReason, "the replicas are interpreted again"},
		{kinds, workv1alpha2.DependenciesInterpreted, no, workv1alpha2.InterpreterFailedReason,
			"a script or webhook could not interpret the dependencies of the template; known dependencies stay attached"},
		{kinds, workv1alpha2.DependenciesInterpreted, yes, workv1alpha2.InterpretedReason, "the dependencies are interpreted again"},
		{kinds, workv1alpha2.StatusAggregated, no, workv1alpha2.InterpreterFailedReason,
			"a script or webhook could not aggregate the status of the template, or the API server rejects the result; the status does not change"},
		{kinds, workv1alpha2.StatusAggregated, yes, workv1alpha2.InterpretedReason, "the status is aggregated again"},
	}
}

// templateRows returns the conditions of templates, without the reasons that members set.
func templateRows() []Row {
	kinds := []string{"Deployment"}
	var rows []Row
	for _, kind := range []string{"Available", "Progressing"} {
		rows = append(rows,
			Row{kinds, kind, no, workv1alpha2.TemplateNotAppliedReason, "a cluster does not have the template"},
			Row{kinds, kind, no, workv1alpha2.TemplateNoClusterReason, "no cluster is chosen any more"},
			Row{kinds, kind, unknown, workv1alpha2.TemplateNotReportedReason, "a cluster has not reported yet"})
	}
	return rows
}

func serviceRows() []Row {
	kinds := []string{"MultiClusterService"}
	applied, dispatched := networkingv1alpha1.MCSServiceAppliedConditionType, networkingv1alpha1.MCSEndpointSliceDispatchedConditionType
	return []Row{
		{kinds, applied, yes, networkingv1alpha1.MCSServiceAppliedSucceed, "the Service is being propagated to the clusters"},
		{kinds, applied, no, networkingv1alpha1.MCSServiceAppliedFailed, "the Service could not be propagated"},
		{kinds, dispatched, yes, networkingv1alpha1.MCSEndpointSliceDispatchedSucceed, "the endpoints are being sent to the consumers"},
		{kinds, dispatched, no, networkingv1alpha1.MCSEndpointSliceDispatchedFailed, "the endpoints could not be sent"},
	}
}

func operatorRows() []Row {
	kinds, ready := []string{"Karmada"}, string(operatorv1alpha1.Ready)
	return []Row{
		{kinds, ready, yes, operatorv1alpha1.ReasonCompleted, "the control plane is installed as specified"},
		{kinds, ready, no, operatorv1alpha1.ReasonProgressing, "the control plane is being installed or changed"},
		{kinds, ready, no, operatorv1alpha1.ReasonFailed, "a step of the installation failed"},
		{kinds, ready, no, operatorv1alpha1.ReasonValidationError, "the specification cannot be installed"},
	}
}

func registryRows() []Row {
	kinds, cached := []string{"ResourceRegistry"}, searchv1alpha1.RegistryConditionCached
	return []Row{
		{kinds, cached, yes, searchv1alpha1.RegistryReasonComplete, "the objects of all selected kinds are watched in all selected clusters"},
		{kinds, cached, no, searchv1alpha1.RegistryReasonListing, "objects are listed for the first time"},
		{kinds, cached, no, searchv1alpha1.RegistryReasonIncomplete, "a kind is missing or out of date in a cluster; the message names them"},
		{kinds, cached, no, searchv1alpha1.RegistryReasonNotServed, "no selected cluster serves a kind, or a selector is invalid"},
		{kinds, cached, no, searchv1alpha1.RegistryReasonNoCluster, "no cluster is selected"},
		{kinds, cached, no, searchv1alpha1.RegistryReasonBackendFailing,
			"all objects are cached, but OpenSearch does not store some of them; the message says why"},
	}
}
