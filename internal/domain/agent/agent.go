// Package agent answers: who is the agent of a cluster, what may it do in the control plane,
// and which requests for its certificate are approved?
//
// The user name of an agent contains the name of its cluster: user
// system:karmada:agent:<cluster> in group system:karmada:agents. The rights of the agent
// follow from that name. So no other requester may get a certificate with the name of the
// cluster.
//
// Invariants:
//   - A certificate for a name that is in use is issued only to the agent with that name.
//     Unclear requests are left to administrators.
//   - The rights of one agent never cover objects of another cluster.
package agent

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	// Group is the group of agents, which is the organization in their certificates.
	Group = "system:karmada:agents"

	// UserPrefix is the prefix of the user name of an agent. The name of its cluster follows.
	UserPrefix = "system:karmada:agent:"

	// BootstrapGroup is the group of users with a bootstrap token that may register clusters.
	BootstrapGroup = "system:bootstrappers:karmada:default-cluster-token"

	// GeneratorUser is the user that the register command of other releases uses temporarily to
	// create the RBAC objects of an agent.
	GeneratorUser = UserPrefix + reservedName

	// GeneratorPolicy is the name of the admission policy, and of its binding, that limits the
	// Generator to the roles of agents.
	GeneratorPolicy = "karmada-agent-rbac-generator"
)

// reservedName is a name that no cluster with an agent can have, because the user of its agent
// would be the Generator.
const reservedName = "rbac-generator"

// User returns the user name of the agent of a cluster.
func User(cluster string) string { return UserPrefix + cluster }

// ClusterOf returns the cluster whose agent the user is. ok is false for any other user, and
// for the Generator.
func ClusterOf(user string) (cluster string, ok bool) {
	cluster, ok = strings.CutPrefix(user, UserPrefix)
	if !ok || !IsValidName(cluster) {
		return "", false
	}
	return cluster, true
}

// IsValidName reports whether a cluster with that name can have an agent: a DNS label of at most
// 48 characters that is not reserved and does not look like the name of a Secret of another
// cluster.
func IsValidName(cluster string) bool {
	return cluster != reservedName && !strings.HasSuffix(cluster, impersonatorSuffix) &&
		len(cluster) <= clusterv1alpha1.ClusterNameMaxLength && len(validation.IsDNS1123Label(cluster)) == 0
}
