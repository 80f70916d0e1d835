// Package top answers: how much do nodes and pods of the members use? Each member
// is asked through the control plane for what its own metrics server measured.
//
// One table holds the rows of all members. A member that fails hides no other one.
package top

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubectl/pkg/util/completion"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/place"
)

// Values of --sort-by.
const (
	byCPU    = "cpu"
	byMemory = "memory"
)

// New is the command that groups the others.
func New(program *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what nodes and pods of members use",
		Long: `Show how much CPU and memory nodes and pods of members use.

Members are asked for what their metrics servers measured, which is some minutes old.`,
		Example: program.Examples(`
			# Nodes of all members
			{{program}} top node

			# Pods of two members that use most memory
			{{program}} top pod -A --clusters east,west --sort-by memory`),
		SuggestFor: []string{"stats"},
		Args:       command.NoArguments,
		RunE:       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNode(program), newPod(program))
	return cmd
}

// options are what both commands know.
type options struct {
	place.Access
	patience  place.Patience
	completed place.Place

	clusters  []string
	selector  string
	sortBy    string
	noHeaders bool
	protobuf  bool
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.Access.AddFlags(cmd)
	o.patience.AddFlag(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.clusters, "clusters", "C", nil, "members to ask, comma separated; all if empty")
	flags.StringVarP(&o.selector, "selector", "l", "", "label query, such as app=web,tier!=db")
	flags.StringVar(&o.sortBy, "sort-by", "", "cpu or memory: those that use most first; by name if empty")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "leave the header line out")
	flags.BoolVar(&o.protobuf, "use-protocol-buffers", true, "ask for metrics in the shorter encoding")
	o.Program.CompleteClusters(cmd, "clusters", &o.Context)
	_ = cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions([]string{byCPU, byMemory}, cobra.ShellCompDirectiveNoFileComp))
}

// check finds wrong usage before anybody is asked.
func (o *options) check(args []string, fieldSelector string) error {
	switch {
	case len(args) > 1:
		return command.Wrong("only one name can be given, not %d", len(args))
	case len(args) == 1 && (o.selector != "" || fieldSelector != ""):
		return command.Wrong("a name and a selector exclude each other")
	case o.sortBy != "" && o.sortBy != byCPU && o.sortBy != byMemory:
		return command.Wrong("unsupported value %q of --sort-by: use cpu or memory", o.sortBy)
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return command.Wrong("--selector: %w", err)
	}
	if _, err := fields.ParseSelector(fieldSelector); err != nil {
		return command.Wrong("--field-selector: %w", err)
	}
	return nil
}

// complete completes names in the first of the named members.
func (o *options) complete(resource string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || len(o.clusters) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		o.completed = place.Place{Cluster: o.clusters[0]}
		return completion.CompGetResource(o.Factory(&o.completed, 0), resource, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// collect asks all wanted members and returns what they said, in their order, and
// the errors of those that failed. NotFound is an error only when no member has
// anything.
func collect[T any](ctx context.Context, o *options, ask func(context.Context, meter) ([]T, error)) (all []T, err error) {
	members, err := o.Members(ctx, o.clusters)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		o.Program.Tell("No member clusters found: \"%s join\" adds one.", o.Program.Name)
		return nil, nil
	}
	answers, errs := place.AskAll(ctx, members, o.patience, func(ctx context.Context, where place.Place) ([]T, error) {
		m, err := o.meter(ctx, where)
		if err != nil {
			return nil, err
		}
		return ask(ctx, m)
	})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("asking members: %w", err)
	}
	all = slices.Concat(answers...)
	if len(all) > 0 {
		// A member may lack what another one has.
		for i, err := range errs {
			errs[i] = utilerrors.FilterOut(err, apierrors.IsNotFound)
		}
	}
	return all, place.Failure(members, errs)
}
