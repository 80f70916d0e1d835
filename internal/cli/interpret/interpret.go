// Package interpret contains the command that validates, runs and edits the scripts of ResourceInterpreterCustomizations, in
// files or in the control plane.
//
// Invariants:
//   - Scripts run with the engine, the limits and the merge rules of the control plane.
//   - Without --edit, the command writes nothing. With files, it sends no request to a control plane.
//   - Standard output contains only results. The output of scripts goes to standard error.
package interpret

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/cli/command"
)

// requestTimeout is the time limit of the requests to the control plane.
const requestTimeout = 30 * time.Second

type options struct {
	command.ClientFlags
	printFlags *genericclioptions.PrintFlags

	filenames []string
	recursive bool
	checks    bool
	edits     bool
	showsDoc  bool

	operationName                         string
	desiredFile, observedFile, statusFile string
	replicas                              int32
	// isSet reports whether the user set a flag.
	isSet func(flag string) bool
}

// New returns the command that checks, runs and edits customizations.
func New(program *command.Program) *cobra.Command {
	o := &options{
		ClientFlags: command.ClientFlags{Program: program},
		printFlags:  genericclioptions.NewPrintFlags("edited"),
	}
	cmd := &cobra.Command{
		Use:   "interpret (-f FILENAME) (--operation OPERATION) [--ARGS VALUE]...",
		Short: "Check, run and edit the scripts that interpret objects",
		Long: `Check, run and edit the scripts of ResourceInterpreterCustomizations. The customizations
are in files (-f), or in the control plane (their names as arguments).

Without --check and --edit, an operation runs on objects in files, and its results are
printed. If neither files nor names are given, the operation runs with the whole
configuration of the control plane: its customizations, its webhooks, and the built-in rules.
A line on standard error names the source of the rule.

` + operationsHelp() + `
The exit code is 0 if the operation succeeds or all scripts are valid, 2 for wrong usage,
and 1 for all other failures.`,
		Example: program.Examples(`
			# Check the scripts of a file
			{{program}} interpret -f customization.yaml --check

			# How does the file set three replicas in an object?
			{{program}} interpret -f customization.yaml --operation ReviseReplica --desired-file fleet.yaml --desired-replica 3

			# What is the status of an object with these statuses in its clusters?
			{{program}} interpret -f customization.yaml --operation AggregateStatus --desired-file fleet.yaml --status-file statuses.yaml

			# Is an object of a member healthy for the control plane as it is now?
			{{program}} interpret --operation InterpretHealth --observed-file observed.yaml

			# Edit the scripts of a customization in the control plane
			{{program}} interpret fleet --edit`),
		Args:              func(_ *cobra.Command, args []string) error { return o.validate(args) },
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		ValidArgsFunction: o.completeNames,
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.ClientFlags.AddFlags(cmd)
	flags := cmd.Flags()
	o.isSet = flags.Changed
	flags.StringSliceVarP(&o.filenames, "filename", "f", nil, "files, directories or URLs with customizations; - means standard input")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "also read the subdirectories of the directories in -f")
	flags.BoolVar(&o.checks, "check", false, "check the scripts without running them")
	flags.BoolVar(&o.edits, "edit", false, "edit the scripts in an editor ($KUBE_EDITOR, $EDITOR, or vi) and write them back")
	flags.BoolVar(&o.showsDoc, "show-doc", false, "with --edit, describe the function of each script in the editor")
	flags.StringVar(&o.operationName, "operation", "", "operation to run: "+strings.Join(operationNames(), ", "))
	flags.StringVar(&o.desiredFile, desiredFileFlag, "", "file or URL with the template, the object in the control plane")
	flags.StringVar(&o.observedFile, observedFileFlag, "", "file or URL with the object in a member cluster")
	flags.StringVar(&o.statusFile, statusFileFlag, "", "file or URL with the items of AggregateStatus: a list, or one document for each item")
	flags.Int32Var(&o.replicas, replicasFlag, 0, "number of replicas for ReviseReplica")
	o.printFlags.AddFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("operation", cobra.FixedCompletions(operationNames(), cobra.ShellCompDirectiveNoFileComp))
}

// validate returns a usage error if arguments or flags are wrong. It reads no file and sends no
// request.
func (o *options) validate(names []string) error {
	switch {
	case o.checks && o.edits:
		return command.NewUsageError("--check and --edit exclude each other")
	case len(o.filenames) > 0 && len(names) > 0:
		return command.NewUsageError("-f reads customizations from files, and %s names one in the control plane: use one or the other", names[0])
	case (o.checks || o.edits) && o.operationName != "":
		return command.NewUsageError("--operation runs a script: omit it, or omit --check and --edit")
	case (o.checks || o.edits) && len(o.filenames)+len(names) == 0:
		return command.NewUsageError("the customization is missing: set its file with -f, or its name")
	case o.edits && len(o.filenames)+len(names) > 1:
		return command.NewUsageError("--edit takes exactly one customization, not %d", len(o.filenames)+len(names))
	case o.edits && slices.ContainsFunc(o.filenames, isStream):
		return command.NewUsageError("--edit writes back to a file or to the control plane, not to %s", o.filenames[0])
	case !o.checks && !o.edits && o.operationName == "":
		return command.NewUsageError("--operation is missing: one of %s", strings.Join(operationNames(), ", "))
	}
	if err := o.validateOutput(); err != nil || o.checks || o.edits {
		return err
	}
	return o.validateInput()
}

// isStream reports whether a source of -f is standard input or a URL.
func isStream(source string) bool { return source == command.StandardInput || command.IsURL(source) }

func (o *options) run(ctx context.Context, names []string) error {
	o.noteUnusedFlags()
	switch {
	case o.edits:
		return o.edit(ctx, names)
	case o.checks:
		found, err := o.readCustomizations(ctx, names)
		if err != nil {
			return err
		}
		return o.reportValidity(found)
	default:
		return o.execute(ctx, names)
	}
}

// noteUnusedFlags prints a note for each flag that has no effect.
func (o *options) noteUnusedFlags() {
	if o.showsDoc && !o.edits {
		o.Program.Messagef("note: --show-doc has no effect without --edit")
	}
	used, _ := findOperation(o.operationName)
	for _, flag := range inputFlags {
		if o.isSet(flag) && !slices.Contains(used.flags, flag) {
			o.Program.Messagef("note: --%s has no effect here", flag)
		}
	}
}

// interpreterOptions returns the options of the interpreter, which prints the output of scripts to standard error.
func (o *options) interpreterOptions() interpreters.Options {
	return interpreters.Options{Print: func(line string) { o.Program.Messagef("%s", line) }}
}
