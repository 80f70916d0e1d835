// Package kubectl contains the commands of kubectl for a control plane and its members. Most commands are
// kubectl's own, with clients of the selected cluster. apply, get and top differ from kubectl: apply
// creates policies, and get and top query several clusters at the same time.
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
)

// targetScope specifies in which clusters a verb can act. The zero value means only the control plane,
// because commands that change templates do not act in members.
type targetScope int

const (
	// karmadaOrMember means that the verb has the flags --operation-scope and --cluster.
	karmadaOrMember targetScope = iota + 1
	// membersOnly means that the verb has the flag --cluster.
	membersOnly
)

// kubectlCommand is a command of kubectl, with the differences between kubectl and this program.
type kubectlCommand struct {
	newCommand func(parent string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command
	// use replaces the usage line of kubectl unless it is empty.
	use   string
	short string
	// examples are printed before the examples of kubectl. If replacesExamples is true, they
	// replace the examples of kubectl, which do not work in this program.
	examples         string
	replacesExamples bool
	targets          targetScope
	// advice is printed after an error in the control plane unless it is empty.
	advice string
	// hasNoNamespace is true if the flag --namespace has no meaning.
	hasNoNamespace bool
}

// build returns the command for a program.
func (v kubectlCommand) build(program *command.Program) *cobra.Command {
	selection := &command.Selection{ClientFlags: command.ClientFlags{Program: program}}
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

// addCompletions adds completions that the command of kubectl does not have.
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

// Integrate makes a command of kubectl and its subcommands part of the program. The examples
// contain the name of the program, and the command runs in the selected target. An interrupt ends
// the command immediately, as commands of kubectl expect.
func Integrate(cmd *cobra.Command, program *command.Program, selection *command.Selection) {
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

// podTimeout limits how long a command waits for a Pod in the control plane, where Pods never run.
const podTimeout = "1s"

// addAdvice prints advice after an error of a command in the control plane, and limits the wait
// for a Pod in the control plane. The error handler of the command prints the advice, because
// commands of kubectl exit after an error.
func addAdvice(cmd *cobra.Command, program *command.Program, selection *command.Selection, advice string) {
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

// replaceProgramName replaces kubectl in a text with the name of the program.
func replaceProgramName(text, program string) string {
	return strings.ReplaceAll(text, "kubectl ", program+" ")
}

// ignoringParent adapts a constructor that has no parameter for the name of the program.
func ignoringParent(construct func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command) func(string, cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command {
	return func(_ string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
		return construct(factory, streams)
	}
}
