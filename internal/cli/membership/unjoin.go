package membership

import (
	"errors"
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

The propagated objects in the member are deleted first. With --cluster-kubeconfig, the
accounts that join created in the member are deleted too.`,
		Example: program.Examples(`
			# Remove the member "east" and the accounts in it
			{{program}} unjoin east --cluster-kubeconfig=$HOME/.kube/east.config

			# Remove a member that no longer exists
			{{program}} unjoin east --force --wait=10s

			# Delete the remaining objects of a member whose Cluster or control plane no longer exists
			{{program}} unjoin east --force --cluster-kubeconfig=$HOME/.kube/east.config`),
		Args: command.RequireOneName("cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			unjoin.Name = args[0]
			if unjoin.Wait <= 0 {
				return command.NewUsageError("--wait must be longer than 0, not %s", unjoin.Wait)
			}
			unjoin.Command = program.WithKarmada("unjoin", karmadaContext)
			if err := loadUnjoinConfigs(&unjoin, program.KarmadaKubeconfig(karmadaContext), member.Kubeconfig); err != nil {
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
	flags.StringVar(&unjoin.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster,
		"value of --cluster-namespace of join")
	flags.BoolVar(&unjoin.DryRun, "dry-run", false, "validate everything without changing objects")
	flags.BoolVar(&unjoin.Force, "force", false,
		"remove the finalizers if the cluster is not gone in time: the propagated objects stay in it. An unreachable member or a failed cleanup is only a warning. If there is no such Cluster, delete the objects that an interrupted join or unjoin left. If the control plane does not respond, only clean up the member, which needs --cluster-kubeconfig")
	flags.DurationVar(&unjoin.Wait, "wait", registration.DefaultWait, "time limit of the removal")
	return cmd
}

// loadUnjoinConfigs loads both client configurations. The member's configuration stays nil if the user named neither a
// kubeconfig nor a context of the member. The control plane's configuration stays nil if its kubeconfig does not exist and
// --force permits to clean up only the member.
func loadUnjoinConfigs(unjoin *push.Unjoin, karmada, member command.Kubeconfig) (err error) {
	hasMember := member.Path != "" || member.Context != ""
	unjoin.Karmada, err = karmadaConfig(karmada)
	missing := (*command.MissingKubeconfigError)(nil)
	switch {
	case errors.As(err, &missing) && unjoin.Force && hasMember:
		unjoin.Log("warning: the control plane is not cleaned up: %v", err)
	case err != nil:
		return err
	}
	if !hasMember {
		return nil
	}
	unjoin.Member, unjoin.MemberOrigin, err = member.MemberConfig(unjoin.Name)
	return err
}
