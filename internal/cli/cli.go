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
	"karmada.io/karmada/internal/cli/orphans"
	"karmada.io/karmada/internal/cli/promote"
	"karmada.io/karmada/internal/cli/register"
	"karmada.io/karmada/internal/cli/token"
	"karmada.io/karmada/internal/cli/top"
	"karmada.io/karmada/internal/console"
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
	{"troubleshooting", orphans.New},
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

// missing are the commands of Karmada that this version does not have. They are not
// listed in help; an error names them.
var missing = []console.Missing{
	{Name: "init", Instead: "\"karmada up\" runs a control plane on this machine; docs/components.md says how to run the programs one by one."},
	{Name: "deinit", Instead: "\"karmada down --purge\" removes what \"karmada up\" has made; what another tool installed is removed with that tool."},
	{Name: "addons", Instead: "The descheduler, estimator, search and metrics adapter are not part of this version."},
	{Name: "interpret", Instead: "This version stores ResourceInterpreterCustomizations and does not run their scripts."},
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
		Style:     console.StyleOf(os.Stderr),
	}
	root := New(program)
	ran, err := root, console.CheckCommand(root, os.Args[1:], missing)
	if err == nil {
		ran, err = root.ExecuteContextC(ctx)
	}
	if err != nil {
		program.Tell("%s %s", program.Style.Bad("error:"), message(ctx, err))
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
		Use:               strings.ReplaceAll(program.Name, " ", "-"),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: program.Name},
		Short:             "Control a Karmada control plane and its member clusters",
		Long:              program.Name + " controls a Karmada control plane and its member clusters.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              command.NoArguments,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			program.Completing = cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd
			return program.CheckGlobalFlags()
		},
	}
	root.SetOut(program.Out)
	root.SetErr(program.ErrOut)
	root.SetIn(program.In)
	root.SetHelpCommand(newHelp(program))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.Wrong("%w", err) })
	addGlobalFlags(root, program)
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
