package installation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
)

// NewDeinit returns the command "deinit".
func NewDeinit(program *command.Program) *cobra.Command {
	var (
		host    command.Host
		removal install.Removal
		force   bool
	)
	cmd := &cobra.Command{
		Use:   "deinit",
		Short: "Remove a control plane from a Kubernetes cluster",
		Long: `Remove a control plane that "init" installed from its host cluster.

The data of etcd, the files of this machine, and the objects in members stay. Members
keep their workloads. While clusters are joined, the command refuses, because they would
keep the credentials of the control plane: remove them first, or use --force.`,
		Example: program.Examples(`
			# Show what would be deleted
			{{program}} deinit --dry-run

			# Remove the control plane and its namespace
			{{program}} deinit --purge-namespace`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			host.As, removal.Namespace = program.As, host.Namespace
			if !force {
				if err := verifyRemovable(cmd.Context(), program, host, removal.DryRun); err != nil {
					return err
				}
			}
			if !force && !removal.DryRun {
				agreed, err := program.Confirm(fmt.Sprintf("Delete the control plane in namespace %s of the host cluster?", removal.Namespace),
					"--force")
				if err != nil || !agreed {
					return err
				}
			}
			removal.Printf = func(format string, args ...any) { fmt.Fprintf(program.Out, format+"\n", args...) }
			return runRemoval(cmd.Context(), program, host.Kubeconfig, removal)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	host.AddFlags(program, cmd, "components")
	flags := cmd.Flags()
	flags.BoolVarP(&force, "force", "f", false, "do not ask, and remove the control plane even if clusters hold its credentials")
	flags.BoolVar(&removal.DryRun, "dry-run", false, "print what would be deleted, and change nothing")
	flags.BoolVar(&removal.PurgeNamespace, "purge-namespace", false, "delete the namespace too, with everything in it")
	return cmd
}

// verifyRemovable returns an error if clusters hold credentials for the control plane. In a dry run, it only
// prints the error.
func verifyRemovable(ctx context.Context, program *command.Program, host command.Host, isDryRun bool) error {
	err := verifyNoCredentialHolders(ctx, program, host)
	if err != nil && isDryRun && ctx.Err() == nil {
		program.Messagef("%s without --force, the command would refuse: %v", program.Style.Warn("warning:"), err)
		return nil
	}
	return err
}

// holdersTimeout limits the requests that list Clusters.
const holdersTimeout = 30 * time.Second

// verifyNoCredentialHolders returns an error if clusters hold credentials for the control plane to remove,
// or if this is unknown. It returns nil without an installation, because no cluster has joined, and without
// an API server, because the previous, interrupted removal has already verified this.
func verifyNoCredentialHolders(ctx context.Context, program *command.Program, host command.Host) error {
	config, err := host.Config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, holdersTimeout)
	defer cancel()
	installed, err := install.Open(ctx, install.Options{Host: config}, host.Namespace)
	if missing := (*install.NotInstalledError)(nil); errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return err
	}
	defer installed.Close()
	if exists, err := installed.HasAPIServer(ctx); err != nil || !exists {
		return err
	}
	clusters, err := listClusters(ctx, installed)
	if err != nil {
		return fmt.Errorf("not removing the control plane in namespace %s, because it is unknown which clusters hold its credentials: %w\nIf no cluster holds them, add --force", host.Namespace, err)
	}
	return holdersError(program.Name, host.Namespace, clusters)
}

func listClusters(ctx context.Context, installed *install.Installer) ([]clusterv1alpha1.Cluster, error) {
	config, err := installed.ConnectKarmada(ctx)
	if err != nil {
		return nil, err
	}
	karmada, err := clusterclient.NewKarmada(config, nil)
	if err != nil {
		return nil, err
	}
	return karmada.ListClusters(ctx)
}

// holdersError returns an error that names the clusters that hold credentials, or nil if there are none.
func holdersError(program, namespace string, clusters []clusterv1alpha1.Cluster) error {
	holders := registration.NewCredentialHolders(clusters, func(*clusterv1alpha1.Cluster) bool { return false })
	if holders.Count() == 0 {
		return nil
	}
	return fmt.Errorf("not removing the control plane in namespace %s: these clusters would keep its credentials: %s\n"+
		"Remove each first, with the kubeconfig of the control plane:\n  %s\n"+
		"With --force the control plane is removed anyway; the clusters keep the service accounts of Karmada with their roles and bindings, agents, and propagated objects",
		namespace, holders, strings.Join(holders.LeaveCommands(program), "\n  "))
}

func runRemoval(ctx context.Context, program *command.Program, kubeconfig command.Kubeconfig, removal install.Removal) error {
	config, err := kubeconfig.Config()
	if err != nil {
		return err
	}
	if removal.Host, err = install.ReadHost(ctx, config); err != nil {
		return err
	}
	if err := removal.Run(ctx); err != nil {
		return err
	}
	if removal.DryRun {
		fmt.Fprintln(program.Out, "nothing was deleted, because this is a dry run")
		return nil
	}
	fmt.Fprintln(program.Out, "the control plane is removed; the data of etcd stays in its directory or volumes")
	return nil
}
