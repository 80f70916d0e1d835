// Package orphans lists and cleans up member objects that have the labels of Karmada although the Work
// for which they were created does not exist.
//
// Invariants: an object is an orphan only if all Works of its cluster were read from the API
// server after the object, and all bindings after the Works. If Works may be missing, no object is
// deleted or released. An object that cannot be read is reported as unknown and never changed. A
// write contains the UID and the version of the object that was found.
package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/targetcluster"
	"karmada.io/karmada/internal/console"
)

type options struct {
	targetcluster.ClientFlags
	timeout targetcluster.RequestTimeout
	format  console.Format

	adopt, release, remove bool
	yes, dryRun            bool
	// limit is the maximum number of orphans that are shown or changed in each cluster.
	limit int
}

// New returns the command that lists and cleans up orphans.
func New(program *command.Program) *cobra.Command {
	o := &options{ClientFlags: targetcluster.ClientFlags{Program: program}}
	cmd := &cobra.Command{
		Use:   "orphans [CLUSTER...]",
		Short: "List objects in members that belong to no Work",
		Long: `List objects in members that have the labels of Karmada and belong to no Work, in the
named clusters or in all clusters.

WANTED-BY names a Work that contains the same object but did not create it. --adopt gives
such objects to that Work. --release removes the labels of Karmada from objects that no
Work contains: the objects stay, and the users of the member own them. --delete deletes
objects that no Work contains, but no Namespaces and CustomResourceDefinitions: other
objects would be deleted with them. Each action needs --yes, or --dry-run for a preview.

An object that a binding expects in the cluster is not an orphan even if its Work is missing.
--release and --delete reject a cluster whose execution namespace in the control plane is
missing, is being deleted or is younger than 10 minutes: its Works may be missing.

A cluster or a kind that cannot be read is named on standard error, and the exit code is 1.
Its objects are unknown: they are neither listed nor changed.`,
		Example: program.Examples(`
			# List the orphans of all members
			{{program}} orphans

			# Preview a deletion in one member, then delete
			{{program}} orphans east --delete --dry-run
			{{program}} orphans east --delete --yes

			# Give objects to the Works that contain them
			{{program}} orphans east --adopt --yes`),
		Args:              func(*cobra.Command, []string) error { return o.check() },
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		ValidArgsFunction: o.complete,
	}
	o.ClientFlags.AddFlags(cmd)
	o.timeout.AddFlag(cmd)
	o.format.AddFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.adopt, "adopt", false, "give orphans to the Works that contain the same objects")
	flags.BoolVar(&o.release, "release", false, "remove the labels of Karmada from orphans that no Work contains; the objects stay")
	flags.BoolVar(&o.remove, "delete", false, "delete orphans that no Work contains")
	flags.BoolVarP(&o.yes, "yes", "y", false, "run the action without confirmation")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the result without changing objects")
	flags.IntVar(&o.limit, "limit", 500, "maximum number of orphans of a cluster to show or change")
	return cmd
}

// check returns a usage error if flags are wrong. It sends no request.
func (o *options) check() error {
	chosen := 0
	for _, action := range []bool{o.adopt, o.release, o.remove} {
		if action {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return command.NewUsageError("--adopt, --release and --delete exclude each other")
	case chosen == 0 && (o.yes || o.dryRun):
		return command.NewUsageError("--yes and --dry-run need --adopt, --release or --delete")
	case o.limit < 1:
		return command.NewUsageError("--limit %d: must be at least 1", o.limit)
	}
	return nil
}

func (o *options) run(ctx context.Context, wanted []string) error {
	if err := o.CheckKubeconfig(); err != nil {
		return err
	}
	targets, err := o.ListMembers(ctx, wanted)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		o.Program.Messagef("No member clusters found: \"%s join\" adds one.", o.Program.Name)
		return nil
	}
	action := o.selectedAction()
	results, errs := targetcluster.QueryAll(ctx, targets, o.timeout, o.findOrphans)
	if err := o.dropAwaited(ctx, results); err != nil {
		return errors.Join(targetcluster.JoinErrors(targets, errs), err)
	}
	for i := range results {
		results[i].sortAndLimit(o.limit)
		errs[i] = errors.Join(errs[i], results[i].rejectUnsettled(action))
	}
	if action != nil && o.yes && !o.dryRun {
		o.runActionInAll(ctx, targets, results, errs, action)
	}
	if err := o.print(results, time.Now()); err != nil {
		return err
	}
	return errors.Join(targetcluster.JoinErrors(targets, errs), o.confirmationError(results, action))
}

// confirmationError returns an error that says that no object was changed because --yes is
// missing.
func (o *options) confirmationError(results []clusterOrphans, action *action) error {
	if action == nil || o.yes || o.dryRun {
		return nil
	}
	count := 0
	for _, a := range results {
		for i := range a.orphans {
			if one := &a.orphans[i]; action.appliesTo(one) && one.result == "" {
				count++
			}
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("nothing was changed: add --yes to %s the %d objects, or --dry-run to list them", action.verb, count)
}

// complete completes arguments with the names of clusters.
func (o *options) complete(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
	clusters, err := o.ClusterClient()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := clusters.Names(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, prefix) || slices.Contains(given, name)
	}), cobra.ShellCompDirectiveNoFileComp
}
