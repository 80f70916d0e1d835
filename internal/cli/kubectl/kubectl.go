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

// targetSelection specifies in which clusters a command can act. The zero value means the control plane only, because
// commands that change templates must not act in members.
type targetSelection int

const (
	// karmadaOrMember adds the flags --operation-scope and --cluster.
	karmadaOrMember targetSelection = iota + 1
	// membersOnly adds the required flag --cluster.
	membersOnly
)

// kubectlCommand describes a command of kubectl and how this program changes it.
type kubectlCommand struct {
	newCommand func(parent string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command
	// use, unless it is empty, replaces kubectl's usage line.
	use   string
	short string
	// examples are printed before kubectl's examples. If replacesExamples is true, they replace kubectl's examples, which do
	// not work in this program.
	examples         string
	replacesExamples bool
	targets          targetSelection
	// advice, unless it is empty, is printed after an error in the control plane.
	advice string
	// hasNoNamespace is true if the command has no flag --namespace.
	hasNoNamespace bool
}

// build returns the command.
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
	integrate(cmd, program, selection)
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

// addCompletions adds shell completions that kubectl's command lacks.
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

// integrate makes kubectl's command and its subcommands part of the program: the help contains the program's name, and the
// command runs in the selected target. An interrupt ends the process immediately, because kubectl's code ignores contexts.
func integrate(cmd *cobra.Command, program *command.Program, selection *command.Selection) {
	cmd.Example = replaceProgramName(cmd.Example, program.Name)
	cmd.Long = replaceProgramName(cmd.Long, program.Name)
	if arguments := cmd.Args; arguments == nil {
		cmd.Args = func(*cobra.Command, []string) error { return selection.ValidateFlags() }
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
		integrate(subcommand, program, selection)
	}
}

// podTimeout limits the wait for a Pod in the control plane, where no Pod ever runs.
const podTimeout = "1s"

// addAdvice makes the command print the advice after an error in the control plane, and limits the wait for a Pod there.
// kubectl's error handler prints the advice, because kubectl's code exits after an error.
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

// isOffline reports whether the command needs no control plane, because its output depends only on arguments and files.
func isOffline(cmd *cobra.Command) bool {
	for name, value := range map[string]string{"local": "true", "dry-run": "client"} {
		if flag := cmd.Flag(name); flag != nil && flag.Value.String() == value {
			return true
		}
	}
	return cmd.HasSubCommands() && cmd.Flags().NFlag() == 0
}

// replaceProgramName replaces kubectl in text with the name of the program.
func replaceProgramName(text, program string) string {
	return strings.ReplaceAll(text, "kubectl ", program+" ")
}

// ignoringParent adapts a constructor that has no parameter for the name of the program.
func ignoringParent(construct func(cmdutil.Factory,
	genericiooptions.IOStreams) *cobra.Command) func(string, cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command {
	return func(_ string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
		return construct(factory, streams)
	}
}
