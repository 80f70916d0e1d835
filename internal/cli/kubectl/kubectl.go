// Package kubectl answers: how do the commands of kubectl act on a control plane and its
// members? It runs the commands of kubectl, with their flags, output and exit codes, with
// clients of the chosen target.
package kubectl

import (
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/targetcluster"
)

// targets are the clusters in which a verb can act. The zero value is the control plane
// only: commands that change templates do not act in members.
type targets int

const (
	// karmadaOrMember verbs have the flags --operation-scope and --cluster.
	karmadaOrMember targets = iota + 1
	// membersOnly verbs have the flag --cluster.
	membersOnly
)

// verb is a command of kubectl with the differences of this program.
type verb struct {
	newCommand func(parent string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command
	// use replaces the usage of kubectl if it is not empty.
	use   string
	short string
	// examples precede those of kubectl, or replace them if those do not work here.
	examples         string
	replacesExamples bool
	targets          targets
	// advice is printed after an error in the control plane if it is not empty.
	advice string
	// hasNoNamespace is true if the flag --namespace has no meaning.
	hasNoNamespace bool
}

// build returns the command for a program.
func (v verb) build(program *command.Program) *cobra.Command {
	selection := &targetcluster.Selection{ClientFlags: targetcluster.ClientFlags{Program: program}}
	factory := selection.NewFactory(&selection.Target, 0)
	cmd := v.newCommand(program.Name, factory, program.IOStreams)
	selection.AddFlags(cmd)
	if !v.hasNoNamespace {
		selection.AddNamespaceFlag(cmd, factory)
	}
	switch v.targets {
	case karmadaOrMember:
		selection.AddScopeFlags(cmd)
	case membersOnly:
		selection.AddMemberFlag(cmd)
	}
	addCompletions(cmd, factory)
	Integrate(cmd, program, selection)
	if v.advice != "" {
		addAdvice(cmd, program, selection, v.advice)
	}
	cmd.Short = v.short
	if v.use != "" {
		cmd.Use = v.use
	}
	switch examples := program.Examples(v.examples); {
	case v.replacesExamples:
		cmd.Example = examples
	case v.examples != "":
		cmd.Example = examples + "\n\n" + cmd.Example
	}
	return cmd
}

// addCompletions adds completions that kubectl lacks.
func addCompletions(cmd *cobra.Command, factory cmdutil.Factory) {
	if _, hasCompletion := cmd.GetFlagCompletionFunc("container"); !hasCompletion && cmd.Flag("container") != nil {
		_ = cmd.RegisterFlagCompletionFunc("container", completion.ContainerCompletionFunc(factory))
	}
	if cmd.ValidArgsFunction != nil || cmd.HasSubCommands() {
		return
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	if cmd.Name() == "explain" {
		types := completion.ResourceTypeAndNameCompletionFunc(factory)
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return types(cmd, args, prefix)
		}
	}
}

// Integrate makes a command of kubectl and its subcommands part of the program: the
// examples contain the name of the program, and the command runs in the chosen target. An
// interrupt ends it at once, as commands of kubectl expect.
func Integrate(cmd *cobra.Command, program *command.Program, selection *targetcluster.Selection) {
	cmd.Example = replaceProgramName(cmd.Example, program.Name)
	cmd.Long = replaceProgramName(cmd.Long, program.Name)
	if arguments := cmd.Args; arguments == nil {
		cmd.Args = func(*cobra.Command, []string) error { return selection.CheckFlags() }
	}
	if run := cmd.Run; run != nil {
		cmd.Run = nil
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if !isOffline(cmd) {
				if err := selection.Resolve(cmd.Context()); err != nil {
					return err
				}
			}
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			run(cmd, args)
			return nil
		}
	}
	for _, subcommand := range cmd.Commands() {
		Integrate(subcommand, program, selection)
	}
}

// podTimeout is how long Pods are awaited in the control plane, where Pods never run.
const podTimeout = "1s"

// addAdvice prints advice after an error of a command in the control plane, and shortens
// the wait for a Pod there. Commands of kubectl exit after an error, so the advice is
// printed in their error handler.
func addAdvice(cmd *cobra.Command, program *command.Program, selection *targetcluster.Selection, advice string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmdutil.BehaviorOnFatal(func(message string, code int) {
			if message != "" {
				program.Messagef("%s", strings.TrimSuffix(message, "\n"))
			}
			if !selection.Target.IsMember() {
				program.Messagef("%s", advice)
			}
			os.Exit(code)
		})
		selection.SetFromFlags()
		if wait := cmd.Flag("pod-running-timeout"); wait != nil && !wait.Changed && !selection.Target.IsMember() {
			if err := wait.Value.Set(podTimeout); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
}

// isOffline reports whether a command needs no control plane, because its output depends
// only on its arguments and files.
func isOffline(cmd *cobra.Command) bool {
	for name, value := range map[string]string{"local": "true", "dry-run": "client"} {
		if flag := cmd.Flag(name); flag != nil && flag.Value.String() == value {
			return true
		}
	}
	return cmd.HasSubCommands() && cmd.Flags().NFlag() == 0
}

// replaceProgramName replaces kubectl with the name of the program in a text.
func replaceProgramName(text, program string) string {
	return strings.ReplaceAll(text, "kubectl ", program+" ")
}

// ignoringParent adapts a constructor without the parameter for the name of the program.
func ignoringParent(construct func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command) func(string, cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command {
	return func(_ string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
		return construct(factory, streams)
	}
}
