// Package kubectl answers: how does a command of kubectl act on a control plane
// and its members? It is the command of kubectl itself, with its flags, output and
// exit codes, on clients of the place that the flags choose.
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
	"karmada.io/karmada/internal/cli/place"
)

// side is where a verb can act. The zero value is the control plane alone: what
// changes templates leaves the members to Karmada.
type side int

const (
	// eitherSide verbs take --operation-scope and --cluster.
	eitherSide side = iota + 1
	// memberOnly verbs take --cluster.
	memberOnly
)

// verb is a command of kubectl and what differs here.
type verb struct {
	construct func(parent string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command
	// use replaces the usage of kubectl, unless empty.
	use   string
	short string
	// examples come before those of kubectl, or in their place where those would
	// not work here.
	examples string
	alone    bool
	side     side
	// advice follows an error in the control plane, unless empty.
	advice string
	// clusterWide tells that the namespace has no meaning.
	clusterWide bool
}

// command makes the command for a program.
func (v verb) command(program *command.Program) *cobra.Command {
	choice := &place.Choice{Access: place.Access{Program: program}}
	factory := choice.Factory(&choice.Place, 0)
	cmd := v.construct(program.Name, factory, program.IOStreams)
	choice.AddFlags(cmd)
	if !v.clusterWide {
		choice.AddNamespace(cmd, factory)
	}
	switch v.side {
	case eitherSide:
		choice.AddEither(cmd)
	case memberOnly:
		choice.AddMember(cmd)
	}
	complete(cmd, factory)
	Adopt(cmd, program, choice)
	if v.advice != "" {
		advise(cmd, program, choice, v.advice)
	}
	cmd.Short = v.short
	if v.use != "" {
		cmd.Use = v.use
	}
	switch examples := program.Examples(v.examples); {
	case v.alone:
		cmd.Example = examples
	case v.examples != "":
		cmd.Example = examples + "\n\n" + cmd.Example
	}
	return cmd
}

// complete completes what kubectl itself leaves to the user.
func complete(cmd *cobra.Command, factory cmdutil.Factory) {
	if _, known := cmd.GetFlagCompletionFunc("container"); !known && cmd.Flag("container") != nil {
		_ = cmd.RegisterFlagCompletionFunc("container", completion.ContainerCompletionFunc(factory))
	}
	if cmd.ValidArgsFunction != nil || cmd.HasSubCommands() {
		return
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	if cmd.Name() == "explain" {
		types := completion.ResourceTypeAndNameCompletionFunc(factory)
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return types(cmd, args, begun)
		}
	}
}

// Adopt makes a command of kubectl, and those below it, one of the program: its
// examples carry the name of the program, and it runs in the chosen place. An
// interrupt ends it at once, as commands of kubectl expect.
func Adopt(cmd *cobra.Command, program *command.Program, choice *place.Choice) {
	cmd.Example = renamed(cmd.Example, program.Name)
	cmd.Long = renamed(cmd.Long, program.Name)
	if arguments := cmd.Args; arguments == nil {
		cmd.Args = func(*cobra.Command, []string) error { return choice.CheckFlags() }
	}
	if run := cmd.Run; run != nil {
		cmd.Run = nil
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if !offline(cmd) {
				if err := choice.Resolve(cmd.Context()); err != nil {
					return err
				}
			}
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			run(cmd, args)
			return nil
		}
	}
	for _, below := range cmd.Commands() {
		Adopt(below, program, choice)
	}
}

// podPatience is how long Pods are waited for in the control plane, where none ever
// start.
const podPatience = "1s"

// advise adds a line to the errors of a command in the control plane, and lets them
// come soon. Commands of kubectl end the process with their errors.
func advise(cmd *cobra.Command, program *command.Program, choice *place.Choice, advice string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmdutil.BehaviorOnFatal(func(message string, code int) {
			if message != "" {
				program.Tell("%s", strings.TrimSuffix(message, "\n"))
			}
			if !choice.Place.Member() {
				program.Tell("%s", advice)
			}
			os.Exit(code)
		})
		choice.Guess()
		if wait := cmd.Flag("pod-running-timeout"); wait != nil && !wait.Changed && !choice.Place.Member() {
			if err := wait.Value.Set(podPatience); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
}

// offline tells that a command can do without a control plane: what it prints may
// only be made of its arguments and files.
func offline(cmd *cobra.Command) bool {
	for name, value := range map[string]string{"local": "true", "dry-run": "client"} {
		if flag := cmd.Flag(name); flag != nil && flag.Value.String() == value {
			return true
		}
	}
	return cmd.HasSubCommands() && cmd.Flags().NFlag() == 0
}

// renamed is a text of kubectl as if it were one of the program.
func renamed(text, program string) string {
	return strings.ReplaceAll(text, "kubectl ", program+" ")
}

// withoutParent fits a constructor that does not ask for the name of the program.
func withoutParent(construct func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command) func(string, cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command {
	return func(_ string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
		return construct(factory, streams)
	}
}
