package kubectl

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/util/completion"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
)

type getOptions struct {
	command.ClientFlags
	printFlags *kubectlget.PrintFlags

	scope   command.Scope
	timeout command.RequestTimeout
	// completionTarget is the target whose objects complete arguments.
	completionTarget  command.Target
	clusters          []string
	allNamespaces     bool
	labels            string
	ignoreNotFound    bool
	watch             bool
	watchOnly         bool
	outputWatchEvents bool
}

// NewGet returns the command that shows objects.
func NewGet(program *command.Program) *cobra.Command {
	o := &getOptions{ClientFlags: command.ClientFlags{Program: program}, printFlags: kubectlget.NewGetPrintFlags()}
	cmd := &cobra.Command{
		Use:   "get [NAME | -l label | -n namespace]",
		Short: "Show objects of the control plane and of its members",
		Long: `Show objects of the control plane and of its members.

Tables have two more columns. CLUSTER is the name of the member, or Karmada for the control
plane. ADOPTION is Y for a member's object that Karmada manages, N for any other object of a
member, and - in the control plane. In other formats, the objects of members have the
annotation ` + clusterv1alpha1.QueryFromClusterAnnotation + ` with the name of the member.`,
		Example: program.Examples(`
			# The deployments of the control plane
			{{program}} get deployments

			# The deployments of all members, or of two of them
			{{program}} get deployments --operation-scope members
			{{program}} get deployments --clusters east,west

			# Watch a deployment in the control plane and in all members
			{{program}} get deployment web -n shop -s all --watch

			# Print JSON for a program
			{{program}} get pods -A -s members -o json`),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		Args:              o.validate,
		ValidArgsFunction: o.complete,
		SuggestFor:        []string{"list", "ls"},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *getOptions) addFlags(cmd *cobra.Command) {
	o.printFlags.AddFlags(cmd)
	o.ClientFlags.AddFlags(cmd)
	o.AddNamespaceFlag(cmd, o.NewFactory(&o.completionTarget, 0))
	command.AddScope(cmd, &o.scope, "clusters to query: karmada for the control plane, members, or all", command.ScopeKarmada,
		command.ScopeMembers, command.ScopeAll)
	o.timeout.AddFlag(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.clusters, "clusters", "C", nil, "members to query, comma separated; all members if empty")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "query all namespaces")
	flags.StringVarP(&o.labels, "labels", "l", "", "label query, such as app=web,tier!=db")
	flags.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "do not report an error for a missing object")
	flags.BoolVarP(&o.watch, "watch", "w", false, "watch for changes after listing the objects")
	flags.BoolVar(&o.watchOnly, "watch-only", false, "watch for changes without listing the objects first")
	flags.BoolVar(&o.outputWatchEvents, "output-watch-events", false, "show the type of each change")
	o.Program.CompleteClusters(cmd, "clusters", &o.Context)
}

// validate returns a usage error if arguments or flags are wrong. It sends no request.
func (o *getOptions) validate(_ *cobra.Command, args []string) error {
	o.applyClustersFlag()
	switch {
	case !o.scope.IncludesMembers() && len(o.clusters) > 0:
		return command.NewUsageError("--clusters needs --operation-scope members or all, not karmada")
	case len(args) == 0:
		return command.NewUsageError("the type of the objects is missing; \"%s get deployments\" shows deployments", o.Program.Name)
	case o.outputWatchEvents && !o.isWatch():
		return command.NewUsageError("--output-watch-events needs --watch or --watch-only")
	}
	if _, err := labels.Parse(o.labels); err != nil {
		return command.NewUsageError("--labels: %w", err)
	}
	if _, err := o.printFlags.ToPrinter(); err != nil {
		return command.NewUsageError("%w", err)
	}
	return nil
}

// applyClustersFlag sets the scope to members if the user named members but no scope.
func (o *getOptions) applyClustersFlag() {
	if len(o.clusters) > 0 {
		o.scope.SetDefault(command.ScopeMembers)
	}
}

func (o *getOptions) isWatch() bool { return o.watch || o.watchOnly }

// isTableOutput reports whether the output is a table.
func (o *getOptions) isTableOutput() bool {
	format := *o.printFlags.OutputFormat
	return (format == "" && *o.printFlags.TemplateFlags.TemplateArgument == "") || format == "wide"
}

func (o *getOptions) run(ctx context.Context, args []string) error {
	targets, err := o.listTargets(ctx)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		o.Program.Messagef("No member clusters found: \"%s join\" adds one.", o.Program.Name)
		return nil
	}
	if o.isWatch() {
		return o.watchTargets(ctx, targets, args)
	}
	results, err := o.queryAll(ctx, targets, args)
	if err != nil {
		return err
	}
	dropNotFoundErrors(results)
	if o.isTableOutput() {
		err = o.printTables(results)
	} else {
		err = o.printObjects(results)
	}
	return errors.Join(append(mergeErrors(results), err)...)
}

// listTargets returns the selected targets: the control plane first, then members by name.
func (o *getOptions) listTargets(ctx context.Context) (targets []command.Target, err error) {
	if err := o.VerifyKubeconfig(); err != nil {
		return nil, err
	}
	if o.scope.IncludesMembers() {
		if targets, err = o.ListMembers(ctx, o.clusters); err != nil {
			return nil, err
		}
	}
	if o.scope.IncludesKarmada() {
		targets = append([]command.Target{{}}, targets...)
	}
	return targets, nil
}

// mergeErrors returns the errors of all targets, as command.MergeErrors does.
func mergeErrors(results []targetResult) []error {
	var targets []command.Target
	var errs []error
	for _, r := range results {
		targets, errs = append(targets, r.target), append(errs, r.err)
	}
	return command.MergeErrors(targets, errs)
}

// complete completes the first argument with types, and all others with names of objects in the first target.
func (o *getOptions) complete(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	o.applyClustersFlag()
	if !o.scope.IncludesKarmada() && len(o.clusters) > 0 {
		o.completionTarget = command.Target{Cluster: o.clusters[0]}
	}
	return completion.ResourceTypeAndNameCompletionFunc(o.NewFactory(&o.completionTarget, 0))(cmd, args, prefix)
}
