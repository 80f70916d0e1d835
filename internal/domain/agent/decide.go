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
	// NotApproved is the condition of a CertificateSigningRequest for an agent that
	// is left to people. Its reason and message say why.
	NotApproved certificatesv1.RequestConditionType = "AgentNotApproved"

	// RightsGranted is the condition of a request that somebody else has approved,
	// when the agent has its rights.
	RightsGranted certificatesv1.RequestConditionType = "AgentRightsGranted"

	// ReasonAutoApproved is the reason of an approval that no person has made.
	ReasonAutoApproved = "AutoApproved"
)

// Reasons for which a request is left to people.
const (
	ReasonNotAllowed         = "RequesterNotAllowed"
	ReasonInvalidName        = "InvalidClusterName"
	ReasonNameTaken          = "ClusterExists"
	ReasonIssued             = "IdentityIssued"
	ReasonNotRegistered      = "ClusterNotRegistered"
	ReasonNamespace          = "ClusterNamespaceNotPrepared"
	ReasonGeneratorUnlimited = "GeneratorUnlimited"
)

// Facts are what the control plane holds under the name that is asked for.
type Facts struct {
	// MayRenew and MayRegister tell whether the requester may create ApproveSelf
	// and ApproveAny.
	MayRenew, MayRegister bool
	// Request is the UID of the CertificateSigningRequest.
	Request types.UID
	// Clusters are those whose name is that of the request, or whose name is that of
	// a Secret which the agent could read; nil if there are none.
	Clusters []clusterv1alpha1.Cluster
	// Role is the ClusterRole of the agent, nil if there is none.
	Role *rbacv1.ClusterRole
	// ClusterNamespace is the namespace of the Secrets, nil if there is none.
	ClusterNamespace *corev1.Namespace
	// GeneratorUnlimited tells that the Generator may do everything.
	GeneratorUnlimited bool
}

// Decision is what becomes of a request.
type Decision struct {
	Approved bool
	// Renewal tells that the agent stays what it is: it gets no rights for that.
	Renewal bool
	// Wait tells that what is in the way is about to go.
	Wait bool
	// Reason and Message say why, for the condition.
	Reason, Message string
}

// Decide says whether a request for the certificate of an agent can be approved
// without asking anybody. A name that is taken is given to nobody but the agent
// that has it already.
func Decide(r Request, facts Facts) Decision {
	if r.Generator {
		return decideGenerator(r, facts)
	}
	if !ValidName(r.Cluster) {
		return refuse(ReasonInvalidName, "no cluster with an agent can be called %q: choose a DNS label of at most %d characters that is neither %q nor ends with %q",
			r.Cluster, clusterv1alpha1.ClusterNameMaxLength, reserved, impersonatorSuffix)
	}
	if r.Renewal() && facts.MayRenew {
		return decideRenewal(r, facts)
	}
	if !facts.MayRegister {
		return notAllowed(r)
	}
	return decideRegistration(r, facts)
}

func decideGenerator(r Request, facts Facts) Decision {
	if !facts.MayRegister {
		return notAllowed(r)
	}
	if facts.GeneratorUnlimited {
		return refuse(ReasonGeneratorUnlimited, "user %s may do everything in this control plane, so whoever holds a token would: bind it to no more than a registration needs, or use a register command that does not need it",
			Generator)
	}
	return approve("Auto approving karmada agent certificate after SubjectAccessReview.")
}

// decideRenewal lets an agent stay what it is, as long as it is one: a cluster that
// was removed is not an agent for good, and one that somebody else joined under its
// name is not its own.
func decideRenewal(r Request, facts Facts) Decision {
	registering := facts.Role != nil && !ofCluster(facts.Role, r.Cluster) && !includes(facts.Clusters, r.Cluster)
	if !registering && !pulls(facts.Clusters, r.Cluster) {
		return refuse(ReasonNotRegistered, "there is no Cluster %q in Pull mode, so the cluster is not registered any more: register it again", r.Cluster)
	}
	decision := approve("Auto approving self karmada agent certificate after SubjectAccessReview.")
	decision.Renewal = true
	return decision
}

func decideRegistration(r Request, facts Facts) Decision {
	if includes(facts.Clusters, r.Cluster) {
		return refuse(ReasonNameTaken, "Cluster %q exists: choose another name, or unregister or unjoin that one first", r.Cluster)
	}
	if len(facts.Clusters) > 0 {
		return refuse(ReasonNameTaken, "Cluster %q exists, whose credentials the agent of %q could read: choose another name", facts.Clusters[0].Name, r.Cluster)
	}
	if role := facts.Role; role != nil {
		if role.DeletionTimestamp != nil || ofCluster(role, r.Cluster) {
			// There is no such Cluster any more, so its role is about to go.
			return Decision{Wait: true}
		}
		if by, ok := role.Annotations[RequestAnnotation]; ok && by != string(facts.Request) {
			return refuse(ReasonIssued, "the certificate of the agent of %q was issued to %s already, on %s; its Cluster does not exist yet. Choose another name, or if that registration was given up: kubectl delete clusterrole %s",
				r.Cluster, role.Annotations[RequesterAnnotation], role.CreationTimestamp.UTC().Format("2006-01-02 15:04:05 UTC"), role.Name)
		}
	}
	if !prepared(r.ClusterNamespace, facts.ClusterNamespace) {
		return refuse(ReasonNamespace, "agents may keep Secrets in namespace %s or in one that was prepared for them, which %q is not: kubectl create namespace %[2]s; kubectl label namespace %[2]s %s=%s",
			clusterv1alpha1.NamespaceKarmadaCluster, r.ClusterNamespace, clusterv1alpha1.KarmadaSystemLabel, clusterv1alpha1.KarmadaSystemLabelValue)
	}
	return approve("Auto approving karmada agent certificate after SubjectAccessReview.")
}

// ofCluster tells whether the role belongs to a Cluster of that name, whose end it
// shares.
func ofCluster(role *rbacv1.ClusterRole, cluster string) bool {
	return slices.ContainsFunc(role.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == clusterv1alpha1.ResourceKindCluster && owner.Name == cluster
	})
}

// prepared tells whether agents may keep Secrets in the namespace. Those who hold a
// token must not choose any: an agent may create Secrets there.
func prepared(name string, namespace *corev1.Namespace) bool {
	switch {
	case name == clusterv1alpha1.NamespaceKarmadaCluster:
		return true
	case name == clusterv1alpha1.NamespaceKarmadaSystem || namespace == nil || namespace.DeletionTimestamp != nil:
		return false
	}
	return namespace.Labels[clusterv1alpha1.KarmadaSystemLabel] == clusterv1alpha1.KarmadaSystemLabelValue &&
		!isExecutionNamespace(name)
}

// includes tells whether a Cluster of that name is among them.
func includes(clusters []clusterv1alpha1.Cluster, name string) bool {
	for i := range clusters {
		if clusters[i].Name == name {
			return true
		}
	}
	return false
}

// pulls tells whether a Cluster of that name that has an agent is among them.
func pulls(clusters []clusterv1alpha1.Cluster, name string) bool {
	for i := range clusters {
		if clusters[i].Name == name {
			return clusters[i].Spec.SyncMode == clusterv1alpha1.Pull
		}
	}
	return false
}

func notAllowed(r Request) Decision {
	return refuse(ReasonNotAllowed, "user %q may not have certificates of agents approved: that takes create on certificatesigningrequests/%s, which group %s has; a token is in that group unless it was created with other --groups",
		r.Requester, ApproveAny, BootstrapGroup)
}

func refuse(reason, format string, args ...any) Decision {
	return Decision{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func approve(message string) Decision {
	return Decision{Approved: true, Reason: ReasonAutoApproved, Message: message}
}
