// Package agent defines the identity of a cluster's agent, its permissions in the control plane, and which
// of its certificate requests are approved.
//
// An agent's user name contains its cluster's name: user system:karmada:agent:<cluster> in the group
// system:karmada:agents. The user name determines the agent's permissions, so no other requester may get a
// certificate with that user name. Invariants:
//
//   - A certificate for a name that is in use is issued only to the agent with that name. If it is
//     unclear whether a requester is that agent, only an administrator can approve the request.
//   - An agent's permissions never cover another cluster's objects.
package agent

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	// Group is the group of agents. The certificate of an agent contains it as the organization.
	Group = "system:karmada:agents"

	// UserPrefix is the prefix of agents' user names. The cluster's name follows it.
	UserPrefix = "system:karmada:agent:"

	// BootstrapGroup is the group of users that may register clusters with a bootstrap token.
	BootstrapGroup = "system:bootstrappers:karmada:default-cluster-token"

	// GeneratorUser is the user with which the register command of other Karmada releases creates
	// the RBAC objects of an agent. The command uses this user only temporarily.
	GeneratorUser = UserPrefix + reservedName

	// GeneratorPolicy is the name of the admission policy that limits GeneratorUser to agents' roles, and of
	// the policy's binding.
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

// IsValidName reports whether a cluster with the given name can have an agent. The name must be a DNS label
// of at most 48 characters, must not be reserved, and must not have the form of the name of another
// cluster's Secret.
func IsValidName(cluster string) bool {
	return cluster != reservedName && !strings.HasSuffix(cluster, impersonatorSuffix) &&
		len(cluster) <= clusterv1alpha1.ClusterNameMaxLength && len(validation.IsDNS1123Label(cluster)) == 0
}
