// Package held lists the member deletions that the control plane holds, and confirms or rejects them.
//
// Invariants: a decision names the UID of a Work, so that it never applies to a later Work of the
// same name. A command changes only Works that it read as held.
package held

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
)

// options are the flags that all commands of this package have.
type options struct {
	program        *command.Program
	karmadaContext string
	selection      selection
}

// New returns the command that groups the commands for held deletions.
func New(program *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "held",
		Short: "List, confirm and reject held deletions",
		Long: `List, confirm and reject deletions in members that the control plane holds.

The control plane holds a deletion if nothing explains it, if a change of a Cluster excludes
many workloads, or if more templates are deleted than the deletion budget allows. The objects
of a held deletion stay unchanged in the member. The name of a held deletion is the name of
the cluster and the name of the Work: CLUSTER/WORK.`,
		Example: program.Examples(`
			# List all held deletions
			{{program}} held list

			# Execute the held deletions of the templates of a namespace
			{{program}} held confirm --namespace shop

			# Keep the objects of all held deletions in a cluster
			{{program}} held reject --cluster east`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newList(program), newDecide(program, confirm), newDecide(program, reject))
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command, selected string) {
	o.program.AddKarmadaContext(cmd, &o.karmadaContext)
	flags := cmd.Flags()
	flags.StringVarP(&o.selection.namespace, "namespace", "n", "", selected+" only held deletions of templates in this namespace")
	flags.StringVarP(&o.selection.cluster, "cluster", "C", "", selected+" only held deletions in this cluster")
	flags.StringVar(&o.selection.reason, "reason", "", selected+" only held deletions with this reason, such as DeletionBudgetExceeded")
	o.program.CompleteClusters(cmd, "cluster", &o.karmadaContext)
	_ = cmd.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(decidableReasons(), cobra.ShellCompDirectiveNoFileComp))
}

func newList(program *command.Program) *cobra.Command {
	o, format := &options{program: program}, console.Format("")
	cmd := &cobra.Command{
		Use:   "list [CLUSTER/WORK...]",
		Short: "List held deletions",
		Long:  "List the held deletions of all clusters, or the named ones.",
		Example: program.Examples(`
			# List the held deletions of the templates of a namespace
			{{program}} held list --namespace shop`),
		RunE: func(cmd *cobra.Command, names []string) error {
			_, found, err := o.find(cmd.Context(), names)
			if err != nil {
				return err
			}
			if len(found) == 0 && format.IsTable() {
				o.program.Messagef("No held deletions found")
				return nil
			}
			return format.Print(o.program.Out, newOutput(found, time.Now()))
		},
	}
	o.addFlags(cmd, "list")
	format.AddFlag(cmd)
	return cmd
}

// verb is a decision about held deletions.
type verb struct {
	name, doneText, short, long string
	decision                    string
	// appliesTo reports whether the decision has an effect on a deletion that is held for a reason.
	appliesTo func(reason string) bool
}

var (
	confirm = verb{
		name: "confirm", doneText: "confirmed", decision: workv1alpha1.ConfirmHeldDeletion, short: "Execute held deletions",
		long:      "Confirm held deletions: the control plane deletes their objects in the members.",
		appliesTo: func(reason string) bool { return slices.Contains(decidableReasons(), reason) },
	}
	reject = verb{
		name: "reject", doneText: "rejected", decision: workv1alpha1.RejectHeldDeletion, short: "Keep the objects of held deletions",
		long: `Reject held deletions: their Works are deleted, and their objects stay in the members. A template
that is created again takes the objects over. Without a template, "orphans" lists them.`,
		appliesTo: func(string) bool { return true },
	}
)

func newDecide(program *command.Program, v verb) *cobra.Command {
	o := &options{program: program}
	all, dryRun := false, false
	cmd := &cobra.Command{
		Use:   v.name + " [CLUSTER/WORK...]",
		Short: v.short,
		Long:  v.long,
		Example: program.Examples(fmt.Sprintf(`
			# One held deletion
			{{program}} held %[1]s east/web-6f9c7d

			# All held deletions of the templates of a namespace
			{{program}} held %[1]s --namespace shop`, v.name)),
		Args: func(_ *cobra.Command, names []string) error { return o.checkSelection(names, all) },
		RunE: func(cmd *cobra.Command, names []string) error { return o.decide(cmd.Context(), v, names, dryRun) },
	}
	o.addFlags(cmd, v.name)
	cmd.Flags().BoolVar(&all, "all", false, v.name+" all held deletions")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the result without changing objects")
	return cmd
}

// checkSelection returns a usage error unless the user selected held deletions.
func (o *options) checkSelection(names []string, all bool) error {
	if chosen := len(names) > 0 || o.selection != (selection{}); chosen == all {
		return command.NewUsageError("name held deletions as CLUSTER/WORK, or use --namespace, --cluster, --reason, or --all alone")
	}
	return checkNames(names)
}

// decide writes a decision to every selected Work.
func (o *options) decide(ctx context.Context, v verb, names []string, dryRun bool) error {
	works, found, err := o.find(ctx, names)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		o.program.Messagef("No held deletions found")
		return nil
	}
	done := 0
	var failures []error
	for i := range found {
		switch one := &found[i]; {
		case !v.appliesTo(one.Reason):
			failures = append(failures, fmt.Errorf("%s: a deletion with the reason %s cannot be confirmed: %s", one.name(), one.Reason, one.Message))
			continue
		case !dryRun:
			if err := works.write(ctx, one, v.decision); err != nil {
				failures = append(failures, err)
				continue
			}
		}
		done++
	}
	suffix := ""
	if dryRun {
		suffix = " (dry run)"
	}
	fmt.Fprintf(o.program.Out, "%d held deletions %s%s\n", done, v.doneText, suffix)
	return joinBounded(failures)
}
