package v1alpha1

// Annotations of the objects that the registration of an agent creates.
const (
	// ClusterNamespaceAnnotation, on the CertificateSigningRequest of an agent, is the namespace
	// for the Secrets of the cluster; karmada-cluster if it is absent. On the ClusterRole of an
	// agent, and on the execution namespace of its cluster, it is the namespace in which the
	// agent has permissions.
	ClusterNamespaceAnnotation = "cluster.karmada.io/cluster-namespace"

	// AgentRequestTimeoutAnnotation, on the CertificateSigningRequest of an agent, is the time for
	// which the requester waits for the certificate, such as 5m0s. The control plane does not
	// approve the request automatically after this time. Such an approval would reserve the name of
	// the cluster for a requester that has stopped waiting.
	AgentRequestTimeoutAnnotation = "cluster.karmada.io/agent-request-timeout"

	// AgentRequestAnnotation, on the ClusterRole of an agent, is the UID of the
	// CertificateSigningRequest of the agent. On an execution namespace, it is the UID of the
	// CertificateSigningRequest for which the namespace was created.
	AgentRequestAnnotation = "cluster.karmada.io/agent-request"

	// PushCredentialsLabel marks, with the value "true", a Secret with the credentials of a
	// cluster in push mode. Agents must not write it, also not the agent of an earlier cluster of
	// the same name.
	PushCredentialsLabel = "cluster.karmada.io/push-credentials"

	// NameReservation is the value of AgentRequestAnnotation on a ClusterRole without rules that
	// reserves the name of a cluster while the cluster joins in push mode. Until the Cluster
	// exists, no agent can get the name.
	NameReservation = "reserved"

	// AgentRequesterAnnotation, on the ClusterRole of an agent, is the user that sent the
	// CertificateSigningRequest of the agent.
	AgentRequesterAnnotation = "cluster.karmada.io/agent-requester"

	// The next annotations, together with ClusterNamespaceAnnotation, copy the annotations of an
	// agent's ClusterRole to the execution namespace of its cluster, in case the ClusterRole is
	// lost. Agents cannot write this namespace.

	// AgentRecordClusterAnnotation is the UID of the Cluster for which the copy is valid.
	AgentRecordClusterAnnotation = "cluster.karmada.io/agent-record-cluster"
	// AgentRecordRequestAnnotation is the copy of AgentRequestAnnotation.
	AgentRecordRequestAnnotation = "cluster.karmada.io/agent-record-request"
	// AgentRecordRequesterAnnotation is the copy of AgentRequesterAnnotation.
	AgentRecordRequesterAnnotation = "cluster.karmada.io/agent-record-requester"
)

// RegistrationScopeAnnotation limits which clusters agents can register. It is set on the Secret of a
// bootstrap token, and copied to the ClusterRole and the execution namespace of each agent that
// registers with the token. Its value is JSON.
const RegistrationScopeAnnotation = "cluster.karmada.io/registration-scope"

// AgentLabel is set on the roles and role bindings of an agent that Karmada manages. Its value
// is the name of the cluster.
const AgentLabel = "cluster.karmada.io/agent"

// AgentQuotaAdmission is the name of the admission webhook that limits the writes of agents.
const AgentQuotaAdmission = "agentquota.karmada.io"

// Conditions of the CertificateSigningRequest of an agent, in addition to those of Kubernetes.
// Their status is always True.
const (
	// AgentNotApproved reports that the request is left to administrators. Its reason and
	// message explain why.
	AgentNotApproved = "AgentNotApproved"

	// AgentPermissionsGranted reports that the agent got its permissions after an administrator
	// approved the request.
	AgentPermissionsGranted = "AgentPermissionsGranted"

	// FormerAgentPermissionsGranted is the name of AgentPermissionsGranted in earlier versions. The
	// controller removes it from stored requests.
	FormerAgentPermissionsGranted = "AgentRightsGranted"

	// AgentReasonAutoApproved is the reason of an approval by the controller.
	AgentReasonAutoApproved = "AutoApproved"

	// AgentReasonApprovedByOthers is the reason of AgentPermissionsGranted.
	AgentReasonApprovedByOthers = "ApprovedByOthers"
)

// Reasons of the condition AgentNotApproved, and of the events that report this condition. A
// reason says why a request is left to administrators.
const (
	// AgentReasonNotAllowed: the requester may not request certificates of agents.
	AgentReasonNotAllowed = "RequesterNotAllowed"

	// AgentReasonInvalidName: no cluster with an agent can have the requested name.
	AgentReasonInvalidName = "InvalidClusterName"

	// AgentReasonNameTaken: a Cluster has the requested name.
	AgentReasonNameTaken = "ClusterExists"

	// AgentReasonCertificateIssued: another requester has a certificate for the name.
	AgentReasonCertificateIssued = "IdentityIssued"

	// AgentReasonRequestTimedOut: the requester stopped waiting before the request was approved.
	AgentReasonRequestTimedOut = "RequestTimedOut"

	// AgentReasonNotRegistered: the agent renews a certificate, and its Cluster does not exist.
	AgentReasonNotRegistered = "ClusterNotRegistered"

	// AgentReasonNamespaceNotPrepared: the namespace for the Secrets is not prepared for agents.
	AgentReasonNamespaceNotPrepared = "ClusterNamespaceNotPrepared"

	// AgentReasonOutOfScope: the scope of the token does not allow the request, or is not known.
	AgentReasonOutOfScope = "OutOfTokenScope"

	// AgentReasonGeneratorUnlimited: the user that creates the roles of agents has all permissions.
	AgentReasonGeneratorUnlimited = "GeneratorUnlimited"
)
