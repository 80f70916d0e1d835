package join

import (
	"fmt"

	"github.com/spf13/cobra"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/push"
)

// NewUnjoin returns the command that unjoins a cluster in push mode.
func NewUnjoin(program *command.Program) *cobra.Command {
	var (
		member         command.MemberFlags
		karmadaContext string
		unjoin         = push.Unjoin{Log: program.Messagef}
	)
	cmd := &cobra.Command{
		Use:   "unjoin CLUSTER_NAME --cluster-kubeconfig=<KUBECONFIG>",
		Short: "Remove a cluster in push mode",
		Long: `Remove a cluster in push mode.

The propagated objects in the member are deleted first. With --cluster-kubeconfig
the accounts that join created in the member are deleted as well.`,
		Example: program.Examples(`
			# Remove the member "east" and the accounts in it
			{{program}} unjoin east --cluster-kubeconfig=$HOME/.kube/east.config

			# Remove a member that no longer exists
			{{program}} unjoin east --force --wait=10s

			# Delete the remaining objects of a member that no longer has a Cluster
			{{program}} unjoin east --force --cluster-kubeconfig=$HOME/.kube/east.config`),
		Args: command.RequireOneName("cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			unjoin.Name = args[0]
			if unjoin.Wait <= 0 {
				return command.NewUsageError("--wait must be longer than 0, not %s", unjoin.Wait)
			}
			if err := loadConfigs(&unjoin, program.KarmadaKubeconfig(karmadaContext), member.Kubeconfig); err != nil {
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
	flags.StringVar(&unjoin.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster, "namespace that was given to join")
	flags.BoolVar(&unjoin.DryRun, "dry-run", false, "make all checks but change nothing")
	flags.BoolVar(&unjoin.Force, "force", false, "remove the finalizers if the cluster is not gone in time: the propagated objects stay in it. An unreachable member or a failed cleanup is only a warning. If there is no such Cluster, delete the objects that an interrupted join or unjoin left")
	flags.DurationVar(&unjoin.Wait, "wait", registration.DefaultWait, "time limit of the removal")
	return cmd
}

// loadConfigs loads the client configurations. The client configuration of the member stays nil if
// the user named neither a kubeconfig nor a context of the member.
func loadConfigs(unjoin *push.Unjoin, karmada, member command.Kubeconfig) (err error) {
	if unjoin.Karmada, err = karmadaConfig(karmada); err != nil {
		return err
	}
	if member.Path == "" && member.Context == "" {
		return nil
	}
	unjoin.Member, unjoin.MemberOrigin, err = member.MemberConfig(unjoin.Name)
	return err
}
