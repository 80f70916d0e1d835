// Package get answers: what is there, in the control plane and in its members?
//
// It asks with kubectl's own request builder and prints with kubectl's own
// printers, so that everything but the two added columns looks as there. Members
// are reached through the control plane with the user's own credentials. Output
// is ordered: the control plane first, then members by name, however fast they
// answer. A member that fails hides no other one.
package get

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/util/completion"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/place"
)

type options struct {
	place.Access
	print *kubectlget.PrintFlags

	scope    place.Scope
	patience place.Patience
	// completed is the place whose names a shell completes.
	completed         place.Place
	clusters          []string
	allNamespaces     bool
	labels            string
	ignoreNotFound    bool
	watch             bool
	watchOnly         bool
	outputWatchEvents bool
}

// New is the command that shows objects.
func New(program *command.Program) *cobra.Command {
	o := &options{Access: place.Access{Program: program}, print: kubectlget.NewGetPrintFlags()}
	cmd := &cobra.Command{
		Use:   "get [NAME | -l label | -n namespace]",
		Short: "Show objects of the control plane and of its members",
		Long: `Show objects of the control plane and of its members.

Tables have a column CLUSTER, which is Karmada for the control plane, and a column
ADOPTION: Y for an object in a member that Karmada manages, N for one that it does
not, - in the control plane. In other formats an object of a member bears the
annotation resource.karmada.io/query-from-cluster with the name of the member.`,
		Example: program.Examples(`
			# The deployments of the control plane
			{{program}} get deployments

			# Where they run: in all members, or in two of them
			{{program}} get deployments --operation-scope members
			{{program}} get deployments --clusters east,west

			# A deployment everywhere, as it changes
			{{program}} get deployment web -n shop -s all --watch

			# For a program
			{{program}} get pods -A -s members -o json`),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		Args:              o.check,
		ValidArgsFunction: o.complete,
		SuggestFor:        []string{"list", "ls"},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.print.AddFlags(cmd)
	o.Access.AddFlags(cmd)
	o.AddNamespace(cmd, o.Factory(&o.completed, 0))
	place.AddScope(cmd, &o.scope, "where to look: karmada, members or all", place.ScopeKarmada, place.ScopeMembers, place.ScopeAll)
	o.patience.AddFlag(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.clusters, "clusters", "C", nil, "members to look in, comma separated; all of the scope if empty")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "look in every namespace")
	flags.StringVarP(&o.labels, "labels", "l", "", "label query, such as app=web,tier!=db")
	flags.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "a missing object is no error")
	flags.BoolVarP(&o.watch, "watch", "w", false, "go on showing changes")
	flags.BoolVar(&o.watchOnly, "watch-only", false, "show changes, and not what is there at first")
	flags.BoolVar(&o.outputWatchEvents, "output-watch-events", false, "show the type of each change")
	o.Program.CompleteClusters(cmd, "clusters", &o.Context)
}

// check finds wrong usage before anybody is asked.
func (o *options) check(_ *cobra.Command, args []string) error {
	o.settle()
	switch {
	case !o.scope.Members() && len(o.clusters) > 0:
		return command.Wrong("--clusters needs --operation-scope members or all, not karmada")
	case len(args) == 0:
		return command.Wrong("the type of the objects is missing; \"%s get deployments\" shows deployments", o.Program.Name)
	case o.outputWatchEvents && !o.watching():
		return command.Wrong("--output-watch-events needs --watch or --watch-only")
	}
	if _, err := labels.Parse(o.labels); err != nil {
		return command.Wrong("--labels: %w", err)
	}
	if _, err := o.print.ToPrinter(); err != nil {
		return command.Wrong("%w", err)
	}
	return nil
}

// settle takes named members for the scope, unless the user gave one.
func (o *options) settle() {
	if len(o.clusters) > 0 {
		o.scope.Imply(place.ScopeMembers)
	}
}

func (o *options) watching() bool { return o.watch || o.watchOnly }

// table tells whether people read the output.
func (o *options) table() bool {
	format := *o.print.OutputFormat
	return (format == "" && *o.print.TemplateFlags.TemplateArgument == "") || format == "wide"
}

func (o *options) run(ctx context.Context, args []string) error {
	places, err := o.places(ctx)
	if err != nil {
		return err
	}
	if len(places) == 0 {
		o.Program.Tell("No member clusters found: \"%s join\" adds one.", o.Program.Name)
		return nil
	}
	if o.watching() {
		return o.follow(ctx, places, args)
	}
	answers, err := o.askAll(ctx, places, args)
	if err != nil {
		return err
	}
	dropAbsent(answers)
	if o.table() {
		err = o.printTables(answers)
	} else {
		err = o.printObjects(answers)
	}
	return errors.Join(append(failures(answers), err)...)
}

// places are where the user wants to look: the control plane first, then members
// by name.
func (o *options) places(ctx context.Context) (places []place.Place, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.scope.Members() {
		if places, err = o.Members(ctx, o.clusters); err != nil {
			return nil, err
		}
	}
	if o.scope.Karmada() {
		places = append([]place.Place{{}}, places...)
	}
	return places, nil
}

// failures are the errors of all places, each with its name unless there is only
// the control plane.
func failures(answers []answer) []error {
	var places []place.Place
	var errs []error
	for _, a := range answers {
		places, errs = append(places, a.place), append(errs, a.err)
	}
	return place.Failures(places, errs)
}

// complete completes the type of the objects, then their names, from the first
// place where they are looked for.
func (o *options) complete(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	o.settle()
	if !o.scope.Karmada() && len(o.clusters) > 0 {
		o.completed = place.Place{Cluster: o.clusters[0]}
	}
	return completion.ResourceTypeAndNameCompletionFunc(o.Factory(&o.completed, 0))(cmd, args, begun)
}
