// Package membership contains the commands that add clusters to the control plane and remove them (join,
// unjoin, register, unregister, token), and the commands that stop and resume scheduling to a cluster
// (cordon, uncordon, taint).
package membership

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/push"
)

// NewJoin returns the command that joins a cluster in push mode.
func NewJoin(program *command.Program) *cobra.Command {
	var (
		member         command.MemberFlags
		karmadaContext string
		as             rest.ImpersonationConfig
		join           = push.Join{Log: program.Messagef}
	)
	cmd := &cobra.Command{
		Use:   "join CLUSTER_NAME --cluster-kubeconfig=<KUBECONFIG>",
		Short: "Register a cluster in push mode",
		Long: `Register a cluster in push mode: the control plane connects to the cluster.

The command creates a service account for the control plane in the member, and stores its
token in the control plane, which must be able to reach the member's API server at the
address in the member's kubeconfig. If the command fails, it deletes the created objects.`,
		Example: program.Examples(`
			# Register the cluster of a kubeconfig as "east". If there are several contexts, the context "east" is used
			{{program}} join east --cluster-kubeconfig=$HOME/.kube/east.config

			# Use another context of the kubeconfig, and set the region of the cluster
			{{program}} join east --cluster-kubeconfig=$HOME/.kube/config --cluster-context=prod-east --cluster-region=eu-west-1

			# Print what would be done
			{{program}} join east --cluster-kubeconfig=$HOME/.kube/east.config --dry-run`),
		Args: command.RequireOneName("cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			join.Name = args[0]
			if err := validateJoin(join, member); err != nil {
				return err
			}
			karmada := program.KarmadaKubeconfig(karmadaContext)
			karmada.As = program.ResolveImpersonation(as)
			var err error
			if join.Karmada, err = karmadaConfig(karmada); err != nil {
				return err
			}
			if join.Member, join.MemberOrigin, err = member.MemberConfig(join.Name); err != nil {
				return err
			}
			if join.ClusterNamespace == clusterv1alpha1.NamespaceKarmadaSystem {
				program.Messagef("warning: namespace %s is meant for the components of Karmada; use another namespace for the secrets of clusters",
					join.ClusterNamespace)
			}
			if err := join.Run(cmd.Context()); err != nil || join.DryRun {
				return err
			}
			fmt.Fprintf(program.Out, "cluster(%s) is joined successfully\n", join.Name)
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	command.AddImpersonation(cmd.Flags(), &as)
	member.AddFlags(program, cmd, command.MemberContextUsage)
	flags := cmd.Flags()
	flags.StringVar(&join.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster,
		"namespace of the cluster's secrets in the control plane, and of the service accounts in the member")
	flags.StringVar(&join.Provider, "cluster-provider", "", "provider of the cluster, for placements to refer to")
	flags.StringVar(&join.Region, "cluster-region", "", "region of the cluster, for placements to refer to")
	flags.StringSliceVar(&join.Zones, "cluster-zones", nil, "zones of the cluster, for placements to refer to")
	flags.StringVar(&join.MemberRole, "member-role", "",
		"ClusterRole of the member that limits the permissions of the control plane there; if empty, it has all permissions")
	flags.BoolVar(&join.DryRun, "dry-run", false, "validate everything without changing objects")
	return cmd
}

func validateJoin(join push.Join, member command.MemberFlags) error {
	if err := registration.ValidateName(join.Name); err != nil {
		return command.NewUsageError("%w", err)
	}
	if join.ClusterNamespace == "" {
		return command.NewUsageError("--cluster-namespace must not be empty")
	}
	if cmp.Or(member.Path, member.Context) == "" {
		return command.NewUsageError("the member is missing: set its kubeconfig with --cluster-kubeconfig, or its context with --cluster-context")
	}
	return nil
}

func karmadaConfig(karmada command.Kubeconfig) (*rest.Config, error) {
	config, err := karmada.Config()
	if err != nil {
		return nil, fmt.Errorf("the control plane: %w", err)
	}
	return config, nil
}
