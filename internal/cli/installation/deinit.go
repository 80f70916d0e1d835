package installation

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install/installer"
)

// NewDeinit returns the command that removes a control plane.
func NewDeinit(program *command.Program) *cobra.Command {
	var (
		host    command.Kubeconfig
		removal installer.Removal
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
			host.As = program.As
			if !force {
				if err := checkBeforeRemoval(cmd.Context(), program, host, removal); err != nil {
					return err
				}
			}
			if !force && !removal.DryRun {
				agreed, err := program.Confirm(fmt.Sprintf("Delete the control plane in namespace %s of the host cluster?", removal.Namespace), "--force")
				if err != nil || !agreed {
					return err
				}
			}
			removal.Printf = func(format string, args ...any) { fmt.Fprintf(program.Out, format+"\n", args...) }
			return runRemoval(cmd.Context(), program, host, removal)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	addHostFlags(program, cmd, &host, &removal.Namespace)
	flags := cmd.Flags()
	flags.BoolVarP(&force, "force", "f", false, "do not ask, and remove the control plane even if clusters hold its credentials")
	flags.BoolVar(&removal.DryRun, "dry-run", false, "print what would be deleted, and change nothing")
	flags.BoolVar(&removal.PurgeNamespace, "purge-namespace", false, "delete the namespace too, with everything in it")
	return cmd
}

// checkBeforeRemoval checks that no cluster holds credentials of the control plane. A dry run only
// prints the result.
func checkBeforeRemoval(ctx context.Context, program *command.Program, host command.Kubeconfig, removal installer.Removal) error {
	err := checkCredentialHolders(ctx, program, host, removal.Namespace)
	if err != nil && removal.DryRun && ctx.Err() == nil {
		program.Messagef("%s without --force, the command would refuse: %v", program.Style.Warn("warning:"), err)
		return nil
	}
	return err
}

func runRemoval(ctx context.Context, program *command.Program, kubeconfig command.Kubeconfig, removal installer.Removal) error {
	config, err := kubeconfig.Config()
	if err != nil {
		return err
	}
	if removal.Host, err = installer.ReadHost(ctx, config); err != nil {
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
