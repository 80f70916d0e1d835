// Package cli answers: what can be typed after karmadactl? It is one table of
// commands and the root that holds them.
//
// Data goes to standard output, everything else to standard error. The exit code
// is 0 when done, 1 when something is not as wanted and 2 after wrong usage.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"karmada.io/karmada/internal/cli/apply"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/cordon"
	_ "karmada.io/karmada/internal/cli/english" // before the first word of kubectl
	"karmada.io/karmada/internal/cli/get"
	"karmada.io/karmada/internal/cli/join"
	"karmada.io/karmada/internal/cli/kubectl"
	"karmada.io/karmada/internal/cli/promote"
	"karmada.io/karmada/internal/cli/register"
	"karmada.io/karmada/internal/cli/token"
	"karmada.io/karmada/internal/cli/top"
)

// Names of the program, as users type them.
const (
	Karmadactl = "karmadactl"
	Plugin     = "kubectl karmada"
)

// row is a command and the group under which help lists it.
type row struct {
	group string
	new   func(*command.Program) *cobra.Command
}

// groups are the titles in help, in their order.
var groups = []*cobra.Group{
	{ID: "basic", Title: "Basic Commands:"},
	{ID: "registration", Title: "Cluster Registration Commands:"},
	{ID: "management", Title: "Cluster Management Commands:"},
	{ID: "troubleshooting", Title: "Troubleshooting and Debugging Commands:"},
	{ID: "advanced", Title: "Advanced Commands:"},
	{ID: "settings", Title: "Settings Commands:"},
	{ID: "other", Title: "Other Commands:"},
}

// commands are all commands, in the order in which help lists them.
var commands = []row{
	{"basic", kubectl.NewExplain},
	{"basic", get.New},
	{"basic", kubectl.NewCreate},
	{"basic", kubectl.NewDelete},
	{"basic", kubectl.NewEdit},
	{"registration", join.NewJoin},
	{"registration", join.NewUnjoin},
	{"registration", token.New},
	{"registration", register.NewRegister},
	{"registration", register.NewUnregister},
	{"management", cordon.NewCordon},
	{"management", cordon.NewUncordon},
	{"management", cordon.NewTaint},
	{"troubleshooting", kubectl.NewAttach},
	{"troubleshooting", kubectl.NewLogs},
	{"troubleshooting", kubectl.NewExec},
	{"troubleshooting", kubectl.NewDescribe},
	{"advanced", apply.New},
	{"advanced", promote.New},
	{"advanced", top.New},
	{"advanced", kubectl.NewPatch},
	{"settings", kubectl.NewLabel},
	{"settings", kubectl.NewAnnotate},
	{"settings", newCompletion},
	{"other", kubectl.NewAPIResources},
	{"other", kubectl.NewAPIVersions},
	{"other", newVersion},
	{"other", newOptions},
}

// Run runs the program under the given name with the arguments of the process and
// returns its exit code.
func Run(name string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second interrupt ends the process at once.
	context.AfterFunc(ctx, stop)
	runtimelog.SetLogger(klog.Background())
	defer klog.Flush()

	program := &command.Program{
		Name:      name,
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
	}
	root := New(program)
	ran, err := root.ExecuteContextC(ctx)
	if err != nil {
		program.Tell("error: %s", message(ctx, err))
		var wrong *command.UsageError
		if errors.As(err, &wrong) {
			program.Tell("See '%s --help'.", ran.CommandPath())
		}
	}
	return command.ExitCode(err)
}

// message is what people read of an error. They know of no context, but of the key
// that they have pressed.
func message(ctx context.Context, err error) string {
	text := strings.TrimSpace(err.Error())
	if ctx.Err() != nil {
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	return text
}

// New makes the root command with all others below it.
func New(program *command.Program) *cobra.Command {
	root := &cobra.Command{
		// The first word is what the shell runs; the plugin has its own file name.
		Use:                        strings.ReplaceAll(program.Name, " ", "-"),
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: program.Name},
		Short:                      "Control a Karmada control plane and its member clusters",
		Long:                       program.Name + " controls a Karmada control plane and its member clusters.",
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		CompletionOptions:          cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:                       knownCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			program.Completing = cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd
		},
	}
	root.SetOut(program.Out)
	root.SetErr(program.ErrOut)
	root.SetIn(program.In)
	root.SetHelpCommand(&cobra.Command{Hidden: true, Use: "no-help"})
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.Wrong("%w", err) })
	addGlobalFlags(root.PersistentFlags(), program)
	root.AddGroup(groups...)
	var inOrder []*cobra.Command
	for _, row := range commands {
		cmd := row.new(program)
		cmd.GroupID = row.group
		inOrder = append(inOrder, cmd)
	}
	root.AddCommand(inOrder...)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		fmt.Fprint(cmd.OutOrStdout(), helpOf(cmd, program.Name, inOrder))
	})
	return root
}

// knownCommand refuses what is not a command, and proposes similar ones.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	unknown := fmt.Errorf("unknown command %q", args[0])
	if similar := root.SuggestionsFor(args[0]); len(similar) > 0 {
		return command.Wrong("%w; did you mean %s?", unknown, strings.Join(similar, " or "))
	}
	return command.Wrong("%w", unknown)
}
