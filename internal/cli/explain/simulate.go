package explain

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/diagnose"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/simulation"
)

// exitLastCopyLost is the exit code if an object would lose its last copy.
const exitLastCopyLost = 3

type simulateOptions struct {
	command.ClientFlags
	timeout command.RequestTimeout
	factory cmdutil.Factory

	files          resource.FilenameOptions
	changes        changeFlags
	hasReplicas    bool
	replicas       int32
	all            bool
	showsUnchanged bool
	settings       componentFlags
	format         console.Format
}

// NewSimulate returns the command that simulates changes.
func NewSimulate(program *command.Program) *cobra.Command {
	o := &simulateOptions{ClientFlags: command.ClientFlags{Program: program}}
	cmd := &cobra.Command{
		Use:   "simulate (-f FILENAME | --all) [--without-cluster NAME] [--taint NAME=TAINT] [--label NAME=LABEL]",
		Short: "Show where objects would go after changes, without changing anything",
		Long: `Show where objects would go, and what would move, after hypothetical changes: objects and
policies in files are added or replace stored ones, and clusters are removed, tainted or
labeled. Nothing is written.

-f simulates the objects in the files, and the stored objects that the policies in the files
affect. --all simulates all objects that the control plane propagates, and shows those that
change.

The command makes the decisions of the control plane, with the capacity in the status of
the Clusters. It ignores overrides, quotas and accurate estimators.

The exit code is 0 if all objects can be placed, 1 if an object cannot be placed as
wanted, 2 for wrong usage, and 3 if an object would lose its last copy.`,
		Example: program.Examples(`
			# Where would the objects of a file go?
			{{program}} simulate -f web.yaml

			# What moves if a cluster is removed?
			{{program}} simulate --all --without-cluster east

			# What does a changed policy do if a cluster also gets a label?
			{{program}} simulate -f policy.yaml --label east=tier=gold

			# What does a taint evict, if the control plane runs with this feature gate?
			{{program}} simulate --all --taint east=maintenance:NoExecute --feature-gates Failover=true`),
		Args: func(cmd *cobra.Command, args []string) error { return o.validate(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *simulateOptions) addFlags(cmd *cobra.Command) {
	o.AddFlags(cmd)
	o.factory = o.NewFactory(&command.Target{}, 0)
	o.AddNamespaceFlag(cmd, o.factory)
	cmdutil.AddFilenameOptionFlags(cmd, &o.files, "with objects and policies to simulate")
	o.changes.addFlags(o.Program, cmd, &o.Context)
	flags := cmd.Flags()
	flags.Int32Var(&o.replicas, "replicas", 0, "number of replicas of the workloads in the files; replaces the number in the files")
	flags.BoolVar(&o.all, "all", false, "simulate all objects that the control plane propagates")
	flags.BoolVar(&o.showsUnchanged, "show-unchanged", false, "with --all, also show objects that do not change")
	o.settings.addFlags(cmd)
	o.timeout.AddFlag(cmd)
	o.format.AddFlag(cmd)
}

// validate returns a usage error if arguments or flags are wrong. It sends no request.
func (o *simulateOptions) validate(cmd *cobra.Command, args []string) error {
	o.hasReplicas = cmd.Flags().Changed("replicas")
	switch {
	case len(args) > 0:
		return command.NewUsageError("unexpected argument %q: set files with -f, or --all", args[0])
	case !o.hasFiles() && !o.all:
		return command.NewUsageError("nothing to simulate: set files with -f, or --all")
	case o.hasReplicas && !o.hasFiles():
		return command.NewUsageError("--replicas applies to the workloads in files: set them with -f")
	case o.replicas < 0:
		return command.NewUsageError("--replicas must not be negative, not %d", o.replicas)
	}
	if err := o.changes.parse(); err != nil {
		return err
	}
	return o.settings.parse()
}

func (o *simulateOptions) hasFiles() bool {
	return len(o.files.Filenames) > 0 || o.files.Kustomize != ""
}

func (o *simulateOptions) run(ctx context.Context) error {
	if err := o.VerifyKubeconfig(); err != nil {
		return err
	}
	rules, err := o.LoadRules(ctx, interpreters.Options{})
	if err != nil {
		return err
	}
	given, err := o.readFiles()
	if err != nil {
		return err
	}
	if given.templates, err = o.revise(ctx, rules, given.templates); err != nil {
		return err
	}
	in, err := o.readControlPlane(ctx, given)
	if err != nil {
		return err
	}
	if err := o.changes.verifyClusters(in.Clusters); err != nil {
		return err
	}
	in.Changes, in.All, in.Rules, in.Now = o.changes.parsed, o.all, rules, time.Now()
	in.Settings = o.settings.resolve(in.Bindings)
	assumptions := slices.Concat(given.notes, o.settings.assumptions(in))
	for _, each := range assumptions {
		o.Program.Messagef("note: %s", each)
	}
	result := simulation.Run(ctx, in)
	if err := o.print(result, assumptions); err != nil {
		return err
	}
	return simulationError(result)
}

// revise sets the replicas of the given workloads.
func (o *simulateOptions) revise(ctx context.Context, rules interpreter.Source,
	templates []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !o.hasReplicas {
		return templates, nil
	}
	revised, err := simulation.ReviseReplicas(ctx, rules, templates, o.replicas)
	if err != nil {
		return nil, command.NewUsageError("--replicas: %w", err)
	}
	return revised, nil
}

// simulationError returns an error that names the first object with the worst effect. It returns nil if all objects can be
// placed.
func simulationError(result simulation.Result) error {
	for _, each := range []struct {
		effect simulation.Effect
		code   int
		text   string
	}{
		{simulation.LastCopyLost, exitLastCopyLost, "would lose its last copy"},
		{simulation.Unplaced, command.ExitFailure, "cannot be placed as wanted"},
	} {
		count := result.Count(each.effect)
		for i := range result.Objects {
			of := &result.Objects[i]
			if of.Effect != each.effect {
				continue
			}
			others := ""
			if count > 1 {
				others = fmt.Sprintf(" (%d objects in total)", count)
			}
			return &command.ResultError{Code: each.code, Reason: fmt.Errorf("%s %s %s: %s%s", of.Kind, nameOf(of), each.text, of.Reason, others)}
		}
	}
	return nil
}

func nameOf(of *simulation.Outcome) string {
	if of.Namespace == "" {
		return of.Name
	}
	return of.Namespace + "/" + of.Name
}

const (
	// maxTargets is the maximum number of clusters in a column of the default table.
	maxTargets = 4
	// maxSummary is the maximum number of clusters in the summary.
	maxSummary = 5
)

// simulationDocument is the result in JSON and YAML.
type simulationDocument struct {
	simulation.Result
	// Assumptions are the sentences that the command prints to standard error.
	Assumptions []string `json:"assumptions"`
}

// print prints the shown objects to standard output, and the summary to standard error.
func (o *simulateOptions) print(result simulation.Result, assumptions []string) error {
	shown := simulation.Result{Objects: []simulation.Outcome{}, Clusters: result.Clusters}
	for i := range result.Objects {
		if o.isShown(&result.Objects[i]) {
			shown.Objects = append(shown.Objects, result.Objects[i])
		}
	}
	output := console.Output{
		Header:    []string{"KIND", "NAMESPACE", "NAME", "NOW", "THEN", "RESULT", "REASON"},
		ColumnGap: 3, Object: simulationDocument{shown, assumptions},
	}
	limit := maxTargets
	if o.format == console.Wide {
		limit = math.MaxInt
	}
	for i := range shown.Objects {
		of := &shown.Objects[i]
		output.Rows = append(output.Rows, []string{
			of.Kind, orDash(of.Namespace), of.Name, diagnose.DescribeTargets(of.Before, limit), diagnose.DescribeTargets(of.After, limit),
			simulationLabels[of.Effect], orDash(of.Message),
		})
		output.Names = append(output.Names, strings.ToLower(of.Kind)+"/"+of.Name)
	}
	if len(output.Rows) > 0 || !o.format.IsTable() {
		if err := o.format.Print(o.Program.Out, output); err != nil {
			return err
		}
	}
	o.Program.Messagef("%s", summaryOf(result))
	return nil
}

// isShown reports whether the object is printed. With --all, only objects that change or cannot be placed are printed.
func (o *simulateOptions) isShown(of *simulation.Outcome) bool {
	return !o.all || o.showsUnchanged || of.IsChanged() || of.Effect == simulation.Unplaced || of.Effect == simulation.LastCopyLost
}

// simulationLabels are the texts of effects in the table.
var simulationLabels = map[simulation.Effect]string{
	simulation.Unchanged: "unchanged", simulation.Changed: "changed", simulation.NotScheduled: "not scheduled",
	simulation.Unplaced: "not placed", simulation.LastCopyLost: "LAST COPY LOST",
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// summaryOf returns one line with the number of objects, and with the changes in each cluster.
func summaryOf(result simulation.Result) string {
	if len(result.Objects) == 0 {
		return "no object is affected: the policies select none, or the control plane has none"
	}
	changed := 0
	for i := range result.Objects {
		if result.Objects[i].IsChanged() {
			changed++
		}
	}
	parts := []string{fmt.Sprintf("%d of %s would change", changed, countOf(len(result.Objects), "object"))}
	for _, each := range []struct {
		effect simulation.Effect
		text   string
	}{
		{simulation.Unplaced, "%d cannot be placed as wanted"},
		{simulation.LastCopyLost, "%d would lose the last copy"},
		{simulation.NotScheduled, "%d not scheduled by this scheduler"},
	} {
		if count := result.Count(each.effect); count > 0 {
			parts = append(parts, fmt.Sprintf(each.text, count))
		}
	}
	text := strings.Join(parts, ", ")
	for i, cluster := range result.Clusters {
		if i == maxSummary {
			return text + fmt.Sprintf("; and %s", countOf(len(result.Clusters)-maxSummary, "more cluster"))
		}
		text += fmt.Sprintf("; %s: %d -> %s", cluster.Name, cluster.ObjectsBefore, countOf(cluster.ObjectsAfter, "object"))
		if cluster.ReplicasBefore != cluster.ReplicasAfter {
			text += fmt.Sprintf(", %d -> %s", cluster.ReplicasBefore, countOf(int(cluster.ReplicasAfter), "replica"))
		}
	}
	return text
}

func countOf(number int, noun string) string {
	if number != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", number, noun)
}
