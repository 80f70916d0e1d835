// Package agent answers "who is the agent of a cluster, what may it do in the
// control plane, and who gets its certificate?".
//
// An agent has the name of its cluster in its own: user system:karmada:agent:<cluster>
// in group system:karmada:agents. What it may do follows from that name, so all
// depends on nobody getting a certificate with the name of another cluster.
//
// Invariants:
//   - A certificate for a name that is taken goes to nobody but the agent of that
//     name. Whatever is unclear is left to people.
//   - The rights of one agent never reach what belongs to another one.
package agent

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	// Group is the group, and so the organization in the certificate, of agents.
	Group = "system:karmada:agents"

	// UserPrefix is followed by the name of a cluster in the user of its agent.
	UserPrefix = "system:karmada:agent:"

	// BootstrapGroup is the group of those who hold a bootstrap token that may
	// register clusters.
	BootstrapGroup = "system:bootstrappers:karmada:default-cluster-token"

	// Generator is the user that the register command of other releases becomes
	// for a moment to give an agent its rights.
	Generator = UserPrefix + reserved

	// GeneratorPolicy is the admission policy, and its binding, that leaves the
	// Generator no other roles than those of agents.
	GeneratorPolicy = "karmada-agent-rbac-generator"
)

// reserved is a name that no cluster with an agent can have: its agent would be
// the Generator.
const reserved = "rbac-generator"

// User is the user that the agent of a cluster is.
func User(cluster string) string { return UserPrefix + cluster }

// ClusterOf returns the cluster whose agent the user is. It is false for anybody
// else, and for the Generator.
func ClusterOf(user string) (cluster string, ok bool) {
	cluster, ok = strings.CutPrefix(user, UserPrefix)
	if !ok || !ValidName(cluster) {
		return "", false
	}
	return cluster, true
}

// ValidName tells whether a cluster of that name can have an agent: a DNS label of
// at most 48 characters that is not reserved, and that does not look like the
// Secret of another cluster.
func ValidName(cluster string) bool {
	return cluster != reserved && !strings.HasSuffix(cluster, impersonatorSuffix) &&
		len(cluster) <= clusterv1alpha1.ClusterNameMaxLength && len(validation.IsDNS1123Label(cluster)) == 0
}
