package agent

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	// ConditionNotApproved is the condition of a CertificateSigningRequest for an agent that is left to
	// administrators. Its reason and message explain why.
	ConditionNotApproved certificatesv1.RequestConditionType = "AgentNotApproved"

	// ConditionRightsGranted is the condition of a request that an administrator approved, after the
	// agent got its rights.
	ConditionRightsGranted certificatesv1.RequestConditionType = "AgentRightsGranted"

	// ReasonAutoApproved is the reason of an approval by the controller.
	ReasonAutoApproved = "AutoApproved"
)

// Reasons for which a request is left to administrators.
const (
	ReasonNotAllowed           = "RequesterNotAllowed"
	ReasonInvalidName          = "InvalidClusterName"
	ReasonNameTaken            = "ClusterExists"
	ReasonCertificateIssued    = "IdentityIssued"
	ReasonNotRegistered        = "ClusterNotRegistered"
	ReasonNamespaceNotPrepared = "ClusterNamespaceNotPrepared"
	ReasonGeneratorUnlimited   = "GeneratorUnlimited"
)

// RequestFacts are the objects that the control plane stores under the requested name.
type RequestFacts struct {
	// CanRenew and CanRegister report whether the requester may create the subresources
	// ApproveSelf and ApproveAny.
	CanRenew, CanRegister bool
	// Request is the UID of the CertificateSigningRequest.
	Request types.UID
	// Clusters are those with the requested name, or with the name of a Secret that the agent
	// could read; nil if there are none.
	Clusters []clusterv1alpha1.Cluster
	// Role is the ClusterRole of the agent, nil if there is none.
	Role *rbacv1.ClusterRole
	// ClusterNamespace is the namespace of the Secrets, nil if there is none.
	ClusterNamespace *corev1.Namespace
	// GeneratorUnlimited is true if the Generator has all rights.
	GeneratorUnlimited bool
}

// Decision is the result for a request.
type Decision struct {
	Approved bool
	// Renewal is true if the agent renews its certificate. It gets no new rights then.
	Renewal bool
	// Wait is true if an obstacle is about to be deleted.
	Wait bool
	// Reason and Message explain the decision, for the condition.
	Reason, Message string
}

// DecideRequest returns whether a request for the certificate of an agent can be approved without an
// administrator. A name that is in use is only given to the agent that has it already.
func DecideRequest(r Request, facts RequestFacts) Decision {
	if r.Generator {
		return decideGenerator(r, facts)
	}
	if !IsValidName(r.Cluster) {
		return reject(ReasonInvalidName, "no cluster with an agent can have the name %q: choose a DNS label of at most %d characters that is neither %q nor ends with %q",
			r.Cluster, clusterv1alpha1.ClusterNameMaxLength, reservedName, impersonatorSuffix)
	}
	if r.IsRenewal() && facts.CanRenew {
		return decideRenewal(r, facts)
	}
	if !facts.CanRegister {
		return requesterNotAllowed(r)
	}
	return decideRegistration(r, facts)
}

func decideGenerator(r Request, facts RequestFacts) Decision {
	if !facts.CanRegister {
		return requesterNotAllowed(r)
	}
	if facts.GeneratorUnlimited {
		return reject(ReasonGeneratorUnlimited, "user %s has all rights in this control plane, so every holder of a token would get them: bind it to no more than a registration needs, or use a register command that does not need it",
			GeneratorUser)
	}
	return approve("Auto approving karmada agent certificate after SubjectAccessReview.")
}

// decideRenewal approves a renewal as long as the agent is registered. A removed cluster loses
// its agent for good. If another cluster joined under the name, its Cluster does not belong to
// this agent.
func decideRenewal(r Request, facts RequestFacts) Decision {
	registering := facts.Role != nil && !isOwnedByCluster(facts.Role, r.Cluster) && !hasCluster(facts.Clusters, r.Cluster)
	if !registering && !isPullCluster(facts.Clusters, r.Cluster) {
		return reject(ReasonNotRegistered, "there is no Cluster %q in Pull mode, so the cluster is not registered any more: register it again", r.Cluster)
	}
	decision := approve("Auto approving self karmada agent certificate after SubjectAccessReview.")
	decision.Renewal = true
	return decision
}

func decideRegistration(r Request, facts RequestFacts) Decision {
	if hasCluster(facts.Clusters, r.Cluster) {
		return reject(ReasonNameTaken, "Cluster %q exists: choose another name, or unregister or unjoin that one first", r.Cluster)
	}
	if len(facts.Clusters) > 0 {
		return reject(ReasonNameTaken, "Cluster %q exists, whose credentials the agent of %q could read: choose another name", facts.Clusters[0].Name, r.Cluster)
	}
	if role := facts.Role; role != nil {
		if role.DeletionTimestamp != nil || isOwnedByCluster(role, r.Cluster) {
			// The Cluster does not exist any more, so its role is about to be deleted.
			return Decision{Wait: true}
		}
		if by, ok := role.Annotations[RequestAnnotation]; ok && by != string(facts.Request) {
			return reject(ReasonCertificateIssued, "the certificate of the agent of %q was issued to %s already, on %s; its Cluster does not exist yet. Choose another name, or if that registration was abandoned: kubectl delete clusterrole %s",
				r.Cluster, role.Annotations[RequesterAnnotation], role.CreationTimestamp.UTC().Format("2006-01-02 15:04:05 UTC"), role.Name)
		}
	}
	if !isPreparedNamespace(r.ClusterNamespace, facts.ClusterNamespace) {
		return reject(ReasonNamespaceNotPrepared, "agents may keep Secrets in namespace %s or in one that was prepared for them, and %q is neither: kubectl create namespace %[2]s; kubectl label namespace %[2]s %s=%s",
			clusterv1alpha1.NamespaceKarmadaCluster, r.ClusterNamespace, clusterv1alpha1.KarmadaSystemLabel, clusterv1alpha1.KarmadaSystemLabelValue)
	}
	return approve("Auto approving karmada agent certificate after SubjectAccessReview.")
}

// isOwnedByCluster reports whether the role belongs to a Cluster with that name and is deleted
// with it.
func isOwnedByCluster(role *rbacv1.ClusterRole, cluster string) bool {
	return slices.ContainsFunc(role.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == clusterv1alpha1.ResourceKindCluster && owner.Name == cluster
	})
}

// isPreparedNamespace reports whether agents may keep Secrets in the namespace. The holder of
// a token must not choose an arbitrary one, because an agent may create Secrets there.
func isPreparedNamespace(name string, namespace *corev1.Namespace) bool {
	switch {
	case name == clusterv1alpha1.NamespaceKarmadaCluster:
		return true
	case name == clusterv1alpha1.NamespaceKarmadaSystem || namespace == nil || namespace.DeletionTimestamp != nil:
		return false
	}
	return namespace.Labels[clusterv1alpha1.KarmadaSystemLabel] == clusterv1alpha1.KarmadaSystemLabelValue &&
		!isExecutionNamespace(name)
}

// hasCluster reports whether one of the Clusters has that name.
func hasCluster(clusters []clusterv1alpha1.Cluster, name string) bool {
	for i := range clusters {
		if clusters[i].Name == name {
			return true
		}
	}
	return false
}

// isPullCluster reports whether one of the Clusters has that name and is in pull mode.
func isPullCluster(clusters []clusterv1alpha1.Cluster, name string) bool {
	for i := range clusters {
		if clusters[i].Name == name {
			return clusters[i].Spec.SyncMode == clusterv1alpha1.Pull
		}
	}
	return false
}

func requesterNotAllowed(r Request) Decision {
	return reject(ReasonNotAllowed, "user %q may not request certificates of agents: that needs the verb create on certificatesigningrequests/%s, which group %s has; a token is in that group unless it was created with other --groups",
		r.Requester, ApproveAny, BootstrapGroup)
}

func reject(reason, format string, args ...any) Decision {
	return Decision{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func approve(message string) Decision {
	return Decision{Approved: true, Reason: ReasonAutoApproved, Message: message}
}
