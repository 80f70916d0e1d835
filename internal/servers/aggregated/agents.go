package aggregated

import (
	"github.com/spf13/pflag"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
)

// AgentOptions limit what agents may write in their Clusters.
type AgentOptions struct {
	// Addresses configure to which addresses agents may make the server connect.
	Addresses agentaddress.Options
	// RequireApproval keeps workloads away from Clusters that agents create until an administrator
	// approves them.
	RequireApproval bool
}

// DefaultAgentOptions returns the default options of a production server.
func DefaultAgentOptions() AgentOptions {
	return AgentOptions{Addresses: agentaddress.DefaultOptions()}
}

// AddFlags adds the flags that set the options.
func (o *AgentOptions) AddFlags(flags *pflag.FlagSet) {
	o.Addresses.AddFlags(flags)
	flags.BoolVar(&o.RequireApproval, "require-cluster-approval", o.RequireApproval,
		"Add the taint "+clusterv1alpha1.TaintClusterUnapproved+":NoSchedule to each Cluster that an agent creates. The agent cannot remove the taint. To approve the Cluster, an administrator removes it.")
}
