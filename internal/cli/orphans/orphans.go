// Package orphans answers: what in the members bears the marks of Karmada and belongs to
// no Work, and what should become of it?
//
// Invariants: an object is an orphan only if all Works of its cluster were read from the
// API server after the object was, and all bindings after the Works. Where Works may be
// missing, nothing is deleted or released. Anything that cannot be read is reported as unknown
// and never treated. A write names the UID and the version of the object that was found.
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
	"karmada.io/karmada/internal/cli/place"
	"karmada.io/karmada/internal/console"
)

type options struct {
	place.Access
	patience place.Patience
	format   console.Format

	adopt, release, remove bool
	yes, dryRun            bool
	// limit bounds how many orphans of a cluster are shown or treated.
	limit int
}

// New is the command that lists and treats orphans.
func New(program *command.Program) *cobra.Command {
	o := &options{Access: place.Access{Program: program}}
	cmd := &cobra.Command{
		Use:   "orphans [CLUSTER...]",
		Short: "List objects in members that belong to no Work",
		Long: `List objects in members that bear the marks of Karmada and belong to no Work, in the
named clusters or in all.

WANTED-BY names a Work that carries the same object but did not create it. --adopt gives
such objects to that Work. --release takes the marks off objects that no Work wants: they
stay and belong to the people of the member. --delete deletes objects that no Work wants,
but neither Namespaces nor CustomResourceDefinitions: objects of others would be deleted
with them. Each of them needs --yes, or --dry-run to see what it would do.

An object that a binding expects in the cluster is no orphan, also if its Work is missing.
--release and --delete refuse a cluster whose execution namespace in the control plane is
missing, is being deleted or is younger than ten minutes: its Works may be missing.

A cluster or a kind that cannot be read is named on standard error, and the exit code is 1.
Its objects are unknown: they are neither listed nor changed.`,
		Example: program.Examples(`
			# What is left behind in all members
			{{program}} orphans

			# What would be deleted in one member, then delete it
			{{program}} orphans east --delete --dry-run
			{{program}} orphans east --delete --yes

			# Let Works take over what they want
			{{program}} orphans east --adopt --yes`),
		Args:              func(*cobra.Command, []string) error { return o.check() },
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		ValidArgsFunction: o.complete,
	}
	o.Access.AddFlags(cmd)
	o.patience.AddFlag(cmd)
	o.format.AddFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.adopt, "adopt", false, "give orphans to the Works that want the same objects")
	flags.BoolVar(&o.release, "release", false, "take the marks of Karmada off orphans that no Work wants; the objects stay")
	flags.BoolVar(&o.remove, "delete", false, "delete orphans that no Work wants")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do it without a question")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print what would be done")
	flags.IntVar(&o.limit, "limit", 500, "orphans of a cluster that are shown or treated at most")
	return cmd
}

// check finds wrong usage before any request is sent.
func (o *options) check() error {
	chosen := 0
	for _, action := range []bool{o.adopt, o.release, o.remove} {
		if action {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return command.Wrong("--adopt, --release and --delete exclude each other")
	case chosen == 0 && (o.yes || o.dryRun):
		return command.Wrong("--yes and --dry-run need --adopt, --release or --delete")
	case o.limit < 1:
		return command.Wrong("--limit %d: must be at least 1", o.limit)
	}
	return nil
}

func (o *options) run(ctx context.Context, wanted []string) error {
	if err := o.Check(); err != nil {
		return err
	}
	places, err := o.Members(ctx, wanted)
	if err != nil {
		return err
	}
	if len(places) == 0 {
		o.Program.Tell("No member clusters found: \"%s join\" adds one.", o.Program.Name)
		return nil
	}
	action := o.action()
	answers, errs := place.AskAll(ctx, places, o.patience, o.find)
	if err := o.dropAwaited(ctx, answers); err != nil {
		return errors.Join(place.Failure(places, errs), err)
	}
	for i := range answers {
		answers[i].sortAndLimit(o.limit)
		errs[i] = errors.Join(errs[i], answers[i].refuse(action))
	}
	if action != nil && o.yes && !o.dryRun {
		o.treatAll(ctx, places, answers, errs, action)
	}
	if err := o.print(answers, time.Now()); err != nil {
		return err
	}
	return errors.Join(place.Failure(places, errs), o.confirmation(answers, action))
}

// confirmation is the error that nothing was done, and how to do it.
func (o *options) confirmation(answers []answer, action *action) error {
	if action == nil || o.yes || o.dryRun {
		return nil
	}
	count := 0
	for _, a := range answers {
		for i := range a.orphans {
			if one := &a.orphans[i]; action.fits(one) && one.result == "" {
				count++
			}
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("nothing was changed: add --yes to %s the %d objects, or --dry-run to see which", action.verb, count)
}

// complete completes the names of clusters.
func (o *options) complete(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	clusters, err := o.Clusters()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := clusters.Names(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, begun) || slices.Contains(given, name)
	}), cobra.ShellCompDirectiveNoFileComp
}
