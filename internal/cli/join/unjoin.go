package join

import (
	"fmt"

	"github.com/spf13/cobra"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/push"
)

// NewUnjoin is the command that ends the membership of a cluster in Push mode.
func NewUnjoin(program *command.Program) *cobra.Command {
	var (
		member         command.Member
		karmadaContext string
		unjoin         = push.Unjoin{Log: program.Tell}
	)
	cmd := &cobra.Command{
		Use:   "unjoin CLUSTER_NAME --cluster-kubeconfig=<KUBECONFIG>",
		Short: "Remove a member that the control plane pushes to",
		Long: `Remove a member that the control plane pushes to.

What was propagated to the member is deleted there first. With --cluster-kubeconfig
the accounts that join made in the member are deleted as well.`,
		Example: program.Examples(`
			# Remove the member "east" and clean up in it
			{{program}} unjoin east --cluster-kubeconfig=$HOME/.kube/east.config

			# Remove a member that is gone for good
			{{program}} unjoin east --force --wait=10s

			# Clean up what is left of a member that has no Cluster any more
			{{program}} unjoin east --force --cluster-kubeconfig=$HOME/.kube/east.config`),
		Args: command.OneName("cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			unjoin.Name = args[0]
			if unjoin.Wait <= 0 {
				return command.Wrong("--wait must be longer than 0, not %s", unjoin.Wait)
			}
			if err := openBoth(&unjoin, program.Karmada(karmadaContext), member.Access); err != nil {
				return err
			}
			if err := unjoin.Run(cmd.Context()); err != nil || unjoin.DryRun {
				return err
			}
			fmt.Fprintf(program.Out, "cluster(%s) is unjoined successfully\n", unjoin.Name)
			return nil
		},
		ValidArgsFunction: program.CompleteCluster(&karmadaContext),
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	member.AddFlags(program, cmd, command.MemberContextUsage)
	flags := cmd.Flags()
	flags.StringVar(&unjoin.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster, "namespace given to join")
	flags.BoolVar(&unjoin.DryRun, "dry-run", false, "check everything and change nothing")
	flags.BoolVar(&unjoin.Force, "force", false, "if the cluster is not gone in time, remove it by dropping finalizers: what was propagated to it stays there. A member that cannot be reached or cleaned up is only warned of. Where there is no such Cluster, clean up what an interrupted join or unjoin has left")
	flags.DurationVar(&unjoin.Wait, "wait", registration.DefaultWait, "how long the removal may take")
	return cmd
}

// openBoth makes the client configurations. The member is left alone unless its
// kubeconfig or context was named.
func openBoth(unjoin *push.Unjoin, karmada, member command.Access) (err error) {
	if unjoin.Karmada, err = karmadaConfig(karmada); err != nil {
		return err
	}
	if member.Path == "" && member.Context == "" {
		return nil
	}
	unjoin.Member, unjoin.MemberOrigin, err = member.MemberConfig(unjoin.Name)
	return err
}
