// Package agent defines the identity of a cluster's agent, its permissions in the control plane,
// and the requests for its certificate that are approved.
//
// The user name of an agent contains the name of its cluster: user system:karmada:agent:<cluster>
// in group system:karmada:agents. The user name determines the permissions of the agent, so no other
// requester may get a certificate with that user name.
//
// Invariants:
//   - A certificate for a name that is in use is issued only to the agent with that name. If it is
//     unclear whether a requester is that agent, only an administrator can approve the request.
//   - The permissions of one agent never cover objects of another cluster.
package agent

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	// Group is the group of agents. The certificate of an agent contains it as the organization.
	Group = "system:karmada:agents"

	// UserPrefix is the prefix of the user name of an agent. The user name ends with the cluster's name.
	UserPrefix = "system:karmada:agent:"

	// BootstrapGroup is the group of users that may register clusters with a bootstrap token.
	BootstrapGroup = "system:bootstrappers:karmada:default-cluster-token"

	// GeneratorUser is the user with which the register command of other Karmada releases creates
	// the RBAC objects of an agent. The command uses this user only temporarily.
	GeneratorUser = UserPrefix + reservedName

	// GeneratorPolicy is the name of an admission policy and of the binding of that policy. The
	// policy limits GeneratorUser to the roles of agents.
	GeneratorPolicy = "karmada-agent-rbac-generator"
)

// reservedName is a name that no cluster with an agent can have, because the user name of its agent
// would be GeneratorUser.
const reservedName = "rbac-generator"

// User returns the user name of a cluster's agent.
func User(cluster string) string { return UserPrefix + cluster }

// ClusterOf returns the cluster whose agent the user is. ok is false for GeneratorUser and for
// users that are not agents.
func ClusterOf(user string) (cluster string, ok bool) {
	cluster, ok = strings.CutPrefix(user, UserPrefix)
	if !ok || !IsValidName(cluster) {
		return "", false
	}
	return cluster, true
}

// IsValidName reports whether a cluster with that name can have an agent. The name must be a DNS
// label of at most 48 characters, must not be reserved, and must not have the form of the name of a
// Secret of another cluster.
func IsValidName(cluster string) bool {
	return cluster != reservedName && !strings.HasSuffix(cluster, impersonatorSuffix) &&
		len(cluster) <= clusterv1alpha1.ClusterNameMaxLength && len(validation.IsDNS1123Label(cluster)) == 0
}
