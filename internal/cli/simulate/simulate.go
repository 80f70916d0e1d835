// Package simulate prints which workloads would move if a cluster, a policy or a template were
// different. It reads the control plane and prints the result of internal/domain/simulation.
//
// Invariants: the command writes nothing. It sends one list request for each kind, and none for a
// single object. Equal states give equal output.
package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/targetcluster"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/simulation"
)

// exitLastCopyLost is the exit code if an object would lose its last copy.
const exitLastCopyLost = 3

type options struct {
	targetcluster.ClientFlags
	timeout targetcluster.RequestTimeout
	factory cmdutil.Factory

	files          resource.FilenameOptions
	changes        changeFlags
	hasReplicas    bool
	replicas       int32
	all            bool
	showsUnchanged bool
	settings       settingFlags
	format         console.Format
}

// New returns the command that simulates changes.
func New(program *command.Program) *cobra.Command {
	o := &options{ClientFlags: targetcluster.ClientFlags{Program: program}}
	cmd := &cobra.Command{
		Use:   "simulate (-f FILENAME | --all) [--without-cluster NAME] [--taint NAME=TAINT] [--label NAME=LABEL]",
		Short: "Show where objects would go after changes, without changing anything",
		Long: `Show where objects would go, and what would move, after changes that are not made:
objects and policies in files replace those of the control plane or are added, and
clusters are removed, tainted or labeled. Nothing is written.

-f selects the objects of the files and those that policies in the files concern. --all
selects all objects that the control plane propagates, and shows those that change.

The decisions are those of the control plane. Capacity is that of the status of the
Clusters. Overrides, quotas and accurate estimators are not considered.

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
		Args: func(cmd *cobra.Command, args []string) error { return o.check(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.AddFlags(cmd)
	o.factory = o.NewFactory(&targetcluster.Target{}, 0)
	o.AddNamespaceFlag(cmd, o.factory)
	cmdutil.AddFilenameOptionFlags(cmd, &o.files, "with objects and policies to simulate")
	o.changes.addFlags(o.Program, cmd, &o.Context)
	flags := cmd.Flags()
	flags.Int32Var(&o.replicas, "replicas", 0, "replicas of the workloads in the files, instead of those in the files")
	flags.BoolVar(&o.all, "all", false, "simulate all objects that the control plane propagates")
	flags.BoolVar(&o.showsUnchanged, "show-unchanged", false, "with --all, also show objects that do not change")
	o.settings.addFlags(cmd)
	o.timeout.AddFlag(cmd)
	o.format.AddFlag(cmd)
}

// check returns a usage error if arguments or flags are wrong. It sends no request.
func (o *options) check(cmd *cobra.Command, args []string) error {
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

func (o *options) hasFiles() bool { return len(o.files.Filenames) > 0 || o.files.Kustomize != "" }

func (o *options) run(ctx context.Context) error {
	if err := o.CheckKubeconfig(); err != nil {
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
	if err := o.changes.checkClusters(in.Clusters); err != nil {
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
	return resultError(result)
}

// revise sets the replicas of the given workloads.
func (o *options) revise(ctx context.Context, rules interpreter.Source, templates []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !o.hasReplicas {
		return templates, nil
	}
	revised, err := simulation.ReviseReplicas(ctx, rules, templates, o.replicas)
	if err != nil {
		return nil, command.NewUsageError("--replicas: %w", err)
	}
	return revised, nil
}

// resultError returns an error that names the first object with the worst verdict, or nil.
func resultError(result simulation.Result) error {
	for _, each := range []struct {
		verdict simulation.Verdict
		code    int
		text    string
	}{
		{simulation.LastCopyLost, exitLastCopyLost, "would lose its last copy"},
		{simulation.Unplaced, command.ExitFailure, "cannot be placed as wanted"},
	} {
		count := result.Count(each.verdict)
		for i := range result.Objects {
			of := &result.Objects[i]
			if of.Verdict != each.verdict {
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
