// Package apply applies files to the control plane and propagates their objects to members.
//
// The command is the apply command of kubectl. If the user names members, a policy for each object
// is applied right after the object. The policy selects only this object.
package apply

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	kubectlapply "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/targetcluster"
)

type options struct {
	targetcluster.ClientFlags
	flags *kubectlapply.ApplyFlags

	clusters    []string
	allClusters bool
}

// New returns the command that applies files.
func New(program *command.Program) *cobra.Command {
	o := &options{ClientFlags: targetcluster.ClientFlags{Program: program}, flags: kubectlapply.NewApplyFlags(program.IOStreams)}
	factory := o.NewFactory(&targetcluster.Target{}, 0)
	cmd := &cobra.Command{
		Use:   "apply (-f FILENAME | -k DIRECTORY)",
		Short: "Apply files to the control plane, and propagate their objects to members",
		Long: `Apply files to the control plane.

With --cluster or --all-clusters each applied object is followed by a policy that
propagates only this object to those members. The name of the policy is derived
from the object, so applying again with other members moves the object. The policy
stays when its object is deleted or pruned: delete it as well.`,
		Example: program.Examples(`
			# Apply a file without propagating its objects
			{{program}} apply -f web.yaml

			# Apply a directory and propagate its objects to two members
			{{program}} apply -f web/ --cluster east,west

			# Apply the output of another program and propagate it to all members
			helm template web ./chart | {{program}} apply -f - --all-clusters

			# Print the objects and policies without applying them
			{{program}} apply -f web.yaml --all-clusters --dry-run=client -o yaml`),
		DisableFlagsInUseLine: true,
		Args:                  func(cmd *cobra.Command, args []string) error { return o.check(cmd, args) },
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd, factory, args) },
	}
	o.flags.AddFlags(cmd)
	o.ClientFlags.AddFlags(cmd)
	o.AddNamespaceFlag(cmd, factory)
	cmd.Flags().StringSliceVarP(&o.clusters, "cluster", "C", nil, "members to propagate the applied objects to, comma separated")
	cmd.Flags().BoolVar(&o.allClusters, "all-clusters", false, "propagate the applied objects to all members, also to those that join later")
	program.CompleteClusters(cmd, "cluster", &o.Context)
	return cmd
}

// createsPolicies reports whether the applied objects are propagated to members.
func (o *options) createsPolicies() bool { return o.allClusters || len(o.clusters) > 0 }

// check returns a usage error if arguments or flags are wrong. It sends no request.
func (o *options) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return command.NewUsageError("unexpected argument %q: set files with -f", args[0])
	case o.allClusters && len(o.clusters) > 0:
		return command.NewUsageError("--cluster and --all-clusters exclude each other")
	case len(o.clusters) == 0 && cmd.Flags().Changed("cluster"):
		return command.NewUsageError("--cluster is empty: omit it to apply the objects without propagating them")
	case o.createsPolicies() && o.flags.Subresource != "":
		return command.NewUsageError("--subresource changes a part of an object, which cannot be propagated: omit --cluster and --all-clusters")
	case o.createsPolicies() && o.flags.ApplySetRef != "":
		return command.NewUsageError("--applyset does not include the policies of --cluster and --all-clusters: use one or the other")
	}
	return nil
}

func (o *options) run(cmd *cobra.Command, factory cmdutil.Factory, args []string) error {
	if err := o.CheckKubeconfig(); err != nil {
		return err
	}
	if err := o.checkClusters(cmd.Context()); err != nil {
		return err
	}
	// The next steps are the code of kubectl's command. This code ignores contexts, so let an
	// interrupt end the process again. It also prints its errors itself, and exits after an error.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	applyOptions, err := o.flags.ToOptions(factory, cmd, o.Program.Name, args)
	cmdutil.CheckErr(err)
	cmdutil.CheckErr(applyOptions.Validate())
	if !o.createsPolicies() {
		cmdutil.CheckErr(applyOptions.Run())
		return nil
	}
	applier := policyApplier{options: applyOptions, factory: factory, clusters: withoutDuplicates(o.clusters), messagef: o.Program.Messagef}
	cmdutil.CheckErr(applier.run())
	return nil
}

// withoutDuplicates returns the names without repetitions, in the given order.
func withoutDuplicates(names []string) (kept []string) {
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// checkClusters returns an error if a named member does not exist.
func (o *options) checkClusters(ctx context.Context) error {
	if len(o.clusters) == 0 {
		return nil
	}
	_, err := o.ListMembers(ctx, o.clusters)
	return err
}
