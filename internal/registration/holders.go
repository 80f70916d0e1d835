package registration

import (
	"fmt"
	"slices"
	"strings"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// maxListedHolders limits the number of clusters in a message.
const maxListedHolders = 10

// CredentialHolders are the names of clusters that hold credentials for a control plane, by mode. If the
// control plane is removed first, the credentials can be revoked only with each cluster's own kubeconfig.
type CredentialHolders struct{ Push, Pull []string }

// NewCredentialHolders returns the given Clusters as holders, except those for which isExempt returns true.
func NewCredentialHolders(clusters []clusterv1alpha1.Cluster, isExempt func(*clusterv1alpha1.Cluster) bool) CredentialHolders {
	holders := CredentialHolders{}
	for i := range clusters {
		cluster := &clusters[i]
		switch {
		case isExempt(cluster):
		case cluster.Spec.SyncMode == clusterv1alpha1.Pull:
			holders.Pull = append(holders.Pull, cluster.Name)
		default:
			holders.Push = append(holders.Push, cluster.Name)
		}
	}
	slices.Sort(holders.Push)
	slices.Sort(holders.Pull)
	return holders
}

// Count returns the number of clusters.
func (c CredentialHolders) Count() int { return len(c.Push) + len(c.Pull) }

// String returns the names with their modes, sorted.
func (c CredentialHolders) String() string {
	var all []string
	for _, name := range c.Push {
		all = append(all, name+" (push)")
	}
	for _, name := range c.Pull {
		all = append(all, name+" (pull)")
	}
	slices.Sort(all)
	if more := len(all) - maxListedHolders; more > 0 {
		all = append(all[:maxListedHolders], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}

// LeaveCommands returns, for each mode, the command that removes the mode's first cluster. program is the
// name of the command line, such as karmadactl. flags are added to each command before the flag for the
// member's kubeconfig.
func (c CredentialHolders) LeaveCommands(program string, flags ...string) (commands []string) {
	for _, one := range []struct {
		verb  string
		names []string
	}{{"unjoin", c.Push}, {"unregister", c.Pull}} {
		if len(one.names) > 0 {
			words := append([]string{program, one.verb, one.names[0]}, flags...)
			commands = append(commands, strings.Join(append(words, "--cluster-kubeconfig=MEMBER_KUBECONFIG"), " "))
		}
	}
	return commands
}
