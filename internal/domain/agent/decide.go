package agent

import (
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	// ConditionNotApproved marks an agent's CertificateSigningRequest that only an administrator can approve.
	// The condition's reason and message explain why.
	ConditionNotApproved certificatesv1.RequestConditionType = clusterv1alpha1.AgentNotApproved

	// ConditionPermissionsGranted marks a request that an administrator approved, after the agent got its
	// permissions.
	ConditionPermissionsGranted certificatesv1.RequestConditionType = clusterv1alpha1.AgentPermissionsGranted
)

// RequestFacts holds the facts about a request and the objects that the control plane stores under
// the requested name.
type RequestFacts struct {
	// CanRenew and CanRegister report whether the requester may create the subresources
	// ApproveSelf and ApproveAny.
	CanRenew, CanRegister bool
	// Request is the UID of the CertificateSigningRequest.
	Request types.UID
	// Age is the time since the creation of the CertificateSigningRequest.
	Age time.Duration
	// Clusters are the Clusters with the requested name, or with the name of a Secret that the agent could
	// read.
	Clusters []clusterv1alpha1.Cluster
	// Role is the agent's ClusterRole, or nil if there is none.
	Role *rbacv1.ClusterRole
	// ClusterNamespace is the namespace for the cluster's Secrets, or nil if there is none.
	ClusterNamespace *corev1.Namespace
	// IsScoped is true if the token of the requester has a scope. Scope is the scope, or nil if it is
	// not known, for example because the token was deleted.
	IsScoped bool
	Scope    *Scope
	// GeneratorUnlimited is true if GeneratorUser has all permissions.
	GeneratorUnlimited bool
}

// Decision is the result for a request.
type Decision struct {
	Approved bool
	// Renewal means that the agent renews its certificate, so it gets no new permissions.
	Renewal bool
	// Wait is true if the object that prevents the approval is about to be deleted.
	Wait bool
	// Reason and Message explain the decision in the condition of the request.
	Reason, Message string
}

// DecideRequest decides whether a request for an agent's certificate can be approved without an
// administrator. A certificate for a name that is in use is issued only to the agent with that name.
func DecideRequest(r Request, facts RequestFacts) Decision {
	if r.Generator {
		return decideGenerator(r, facts)
	}
	if !IsValidName(r.Cluster) {
		return reject(clusterv1alpha1.AgentReasonInvalidName,
			"no cluster with an agent can have the name %q: choose a DNS label of at most %d characters that is neither %q nor ends with %q",
			r.Cluster, clusterv1alpha1.ClusterNameMaxLength, reservedName, impersonatorSuffix)
	}
	if r.IsRenewal() && facts.CanRenew {
		return decideRenewal(r, facts)
	}
	if !facts.CanRegister {
		return requesterNotAllowed(r)
	}
	if decision, ok := decideScope(r, facts); !ok {
		return decision
	}
	return decideRegistration(r, facts)
}

// decideScope returns ok if the scope of the token allows the request, and otherwise a decision.
func decideScope(r Request, facts RequestFacts) (decision Decision, ok bool) {
	switch {
	case !facts.IsScoped:
		return Decision{}, true
	case facts.Scope == nil:
		return reject(clusterv1alpha1.AgentReasonOutOfScope,
			"the token of %s has a scope, which cannot be read because the token was deleted or is invalid: create another token with karmadactl token create", r.Requester), false
	case facts.Scope.ClusterName != "" && facts.Scope.ClusterName != r.Cluster:
		return reject(clusterv1alpha1.AgentReasonOutOfScope,
			"the token of %s registers only the cluster %q, not %q: use this name, or another token", r.Requester, facts.Scope.ClusterName,
			r.Cluster), false
	}
	return Decision{}, true
}

func decideGenerator(r Request, facts RequestFacts) Decision {
	if !facts.CanRegister {
		return requesterNotAllowed(r)
	}
	if facts.IsScoped {
		return reject(clusterv1alpha1.AgentReasonOutOfScope,
			"a token with a scope does not allow the user %s, who could create the roles of any cluster: register with karmadactl of this release, or with a token without scope", GeneratorUser)
	}
	if facts.GeneratorUnlimited {
		return reject(clusterv1alpha1.AgentReasonGeneratorUnlimited,
			"user %s has all permissions in this control plane, so every holder of a token would get them: bind it to no more than a registration needs, or use a register command that does not need it",
			GeneratorUser)
	}
	return approve("Auto approving karmada agent certificate after SubjectAccessReview.")
}

// decideRenewal approves a renewal as long as the agent is registered. The agent of a removed
// cluster cannot renew its certificate again. If another cluster joined under the same name, the
// Cluster with that name does not belong to this agent.
func decideRenewal(r Request, facts RequestFacts) Decision {
	registering := facts.Role != nil && IsRegistered(facts.Role) && !isOwnedByCluster(facts.Role, r.Cluster) &&
		!hasCluster(facts.Clusters, r.Cluster)
	if !registering && !isPullCluster(facts.Clusters, r.Cluster) {
		return reject(clusterv1alpha1.AgentReasonNotRegistered,
			"there is no Cluster %q in Pull mode, so the cluster is not registered any more: register it again", r.Cluster)
	}
	decision := approve("Auto approving self karmada agent certificate after SubjectAccessReview.")
	decision.Renewal = true
	return decision
}

func decideRegistration(r Request, facts RequestFacts) Decision {
	if hasCluster(facts.Clusters, r.Cluster) {
		return reject(clusterv1alpha1.AgentReasonNameTaken, "Cluster %q exists: choose another name, or unregister or unjoin that one first",
			r.Cluster)
	}
	if len(facts.Clusters) > 0 {
		return reject(clusterv1alpha1.AgentReasonNameTaken,
			"Cluster %q exists, whose credentials the agent of %q could read: choose another name", facts.Clusters[0].Name, r.Cluster)
	}
	role := facts.Role
	if role != nil {
		if role.DeletionTimestamp != nil || isOwnedByCluster(role, r.Cluster) {
			// The Cluster does not exist anymore, so the role of its agent is about to be deleted.
			return Decision{Wait: true}
		}
		if !IsRegistered(role) {
			return reject(clusterv1alpha1.AgentReasonNameTaken,
				"cluster %q joins in push mode: choose another name, or if that join was interrupted: kubectl delete clusterrole %s", r.Cluster,
				role.Name)
		}
		if by, ok := role.Annotations[clusterv1alpha1.AgentRequestAnnotation]; ok && by != string(facts.Request) {
			return reject(clusterv1alpha1.AgentReasonCertificateIssued,
				"the certificate of the agent of %q was issued to %s already, on %s; its Cluster does not exist yet. Choose another name, or if that registration was abandoned: kubectl delete clusterrole %s",
				r.Cluster, role.Annotations[clusterv1alpha1.AgentRequesterAnnotation], role.CreationTimestamp.UTC().Format("2006-01-02 15:04:05 UTC"),
				role.Name)
		}
	}
	if role == nil && r.Timeout > 0 && facts.Age >= r.Timeout {
		return reject(clusterv1alpha1.AgentReasonRequestTimedOut,
			"the requester waited %s for the certificate and has stopped waiting: register the cluster again", r.Timeout)
	}
	if !isPreparedNamespace(r.ClusterNamespace, facts.ClusterNamespace) {
		return reject(clusterv1alpha1.AgentReasonNamespaceNotPrepared,
			"agents may keep Secrets in namespace %s or in one that was prepared for them, and %q is neither: kubectl create namespace %[2]s; kubectl label namespace %[2]s %s=%s",
			clusterv1alpha1.NamespaceKarmadaCluster, r.ClusterNamespace, clusterv1alpha1.KarmadaSystemLabel, clusterv1alpha1.KarmadaSystemLabelValue)
	}
	return approve("Auto approving karmada agent certificate after SubjectAccessReview.")
}

// isOwnedByCluster reports whether the role is owned by a Cluster with that name, so that the role
// is deleted with the Cluster.
func isOwnedByCluster(role *rbacv1.ClusterRole, cluster string) bool {
	return slices.ContainsFunc(role.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == clusterv1alpha1.ResourceKindCluster && owner.Name == cluster
	})
}

// isPreparedNamespace reports whether agents may keep Secrets in the namespace. The holder of a
// bootstrap token must not choose an arbitrary namespace, because the agent may create Secrets in
// the chosen namespace.
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

// hasCluster reports whether one of the Clusters has the given name.
func hasCluster(clusters []clusterv1alpha1.Cluster, name string) bool {
	for i := range clusters {
		if clusters[i].Name == name {
			return true
		}
	}
	return false
}

// isPullCluster reports whether one of the Clusters has the given name and is in pull mode.
func isPullCluster(clusters []clusterv1alpha1.Cluster, name string) bool {
	for i := range clusters {
		if clusters[i].Name == name {
			return clusters[i].Spec.SyncMode == clusterv1alpha1.Pull
		}
	}
	return false
}

func requesterNotAllowed(r Request) Decision {
	return reject(clusterv1alpha1.AgentReasonNotAllowed,
		"user %q may not request certificates of agents: that needs the verb create on certificatesigningrequests/%s, which group %s has; a token is in that group unless it was created with other --groups",
		r.Requester, ApproveAny, BootstrapGroup)
}

func reject(reason, format string, args ...any) Decision {
	return Decision{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func approve(message string) Decision {
	return Decision{Approved: true, Reason: clusterv1alpha1.AgentReasonAutoApproved, Message: message}
}
