// Package apply answers: how do objects of files get into the control plane, and
// from there to the members that the user names?
//
// It is kubectl's apply. When members are named, each object is followed at once
// by a policy that selects this object alone.
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
	"karmada.io/karmada/internal/cli/place"
)

type options struct {
	place.Access
	flags *kubectlapply.ApplyFlags

	clusters    []string
	allClusters bool
}

// New is the command that applies files.
func New(program *command.Program) *cobra.Command {
	o := &options{Access: place.Access{Program: program}, flags: kubectlapply.NewApplyFlags(program.IOStreams)}
	factory := o.Factory(&place.Place{}, 0)
	cmd := &cobra.Command{
		Use:   "apply (-f FILENAME | -k DIRECTORY)",
		Short: "Apply files to the control plane, and send what they hold to members",
		Long: `Apply files to the control plane.

With --cluster or --all-clusters each applied object is followed by a policy that
sends this object, and nothing else, to those members. The policy has a name made
of the object, so that applying again with other members moves the object. A policy
stays when its object is deleted or pruned: delete both.`,
		Example: program.Examples(`
			# Apply a file without sending anything anywhere
			{{program}} apply -f web.yaml

			# Apply a directory and send all that it holds to two members
			{{program}} apply -f web/ --cluster east,west

			# Apply what another program prints and send it to every member
			helm template web ./chart | {{program}} apply -f - --all-clusters

			# What would be made
			{{program}} apply -f web.yaml --all-clusters --dry-run=client -o yaml`),
		DisableFlagsInUseLine: true,
		Args:                  func(cmd *cobra.Command, args []string) error { return o.check(cmd, args) },
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd, factory, args) },
	}
	o.flags.AddFlags(cmd)
	o.Access.AddFlags(cmd)
	o.AddNamespace(cmd, factory)
	cmd.Flags().StringSliceVarP(&o.clusters, "cluster", "C", nil, "members to send the applied objects to, comma separated")
	cmd.Flags().BoolVar(&o.allClusters, "all-clusters", false, "send the applied objects to every member, also to those that join later")
	program.CompleteClusters(cmd, "cluster", &o.Context)
	return cmd
}

// sends tells whether applied objects are to be sent to members.
func (o *options) sends() bool { return o.allClusters || len(o.clusters) > 0 }

// check finds wrong usage before anybody is asked.
func (o *options) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return command.Wrong("unexpected argument %q: files are named with -f", args[0])
	case o.allClusters && len(o.clusters) > 0:
		return command.Wrong("--cluster and --all-clusters exclude each other")
	case len(o.clusters) == 0 && cmd.Flags().Changed("cluster"):
		return command.Wrong("--cluster names no member: leave it out to send the objects nowhere")
	case o.sends() && o.flags.Subresource != "":
		return command.Wrong("--subresource changes a part of an object, which cannot be sent to members: leave --cluster and --all-clusters out")
	case o.sends() && o.flags.ApplySetRef != "":
		return command.Wrong("--applyset does not know the policies of --cluster and --all-clusters: use one or the other")
	}
	return nil
}

func (o *options) run(cmd *cobra.Command, factory cmdutil.Factory, args []string) error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := o.checkClusters(cmd.Context()); err != nil {
		return err
	}
	// From here on it is kubectl, which knows no contexts, prints its own errors and
	// ends the process with them.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	applying, err := o.flags.ToOptions(factory, cmd, o.Program.Name, args)
	cmdutil.CheckErr(err)
	cmdutil.CheckErr(applying.Validate())
	if !o.sends() {
		cmdutil.CheckErr(applying.Run())
		return nil
	}
	sending := sending{options: applying, factory: factory, clusters: once(o.clusters), tell: o.Program.Tell}
	cmdutil.CheckErr(sending.run())
	return nil
}

// once are the names in their order, each one time.
func once(names []string) (kept []string) {
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// checkClusters makes sure that all named members exist.
func (o *options) checkClusters(ctx context.Context) error {
	if len(o.clusters) == 0 {
		return nil
	}
	_, err := o.Members(ctx, o.clusters)
	return err
}
