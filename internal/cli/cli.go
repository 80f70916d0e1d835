// Package cli contains the root command of karmadactl and the table of its commands.
//
// Commands write data to standard output and messages to standard error. The exit code is 0 for success, 1 for a failure
// and 2 for wrong usage. A command can have further codes for its result.
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
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"karmada.io/karmada/internal/cli/addons"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/explain"
	"karmada.io/karmada/internal/cli/installation"
	"karmada.io/karmada/internal/cli/interpret"
	"karmada.io/karmada/internal/cli/kubectl"
	_ "karmada.io/karmada/internal/cli/locale" // must be initialized before the packages of kubectl
	"karmada.io/karmada/internal/cli/membership"
	"karmada.io/karmada/internal/cli/ownership"
	"karmada.io/karmada/internal/cli/rebalance"
	"karmada.io/karmada/internal/cli/search"
	"karmada.io/karmada/internal/console"
)

// The names of the program, as users type them.
const (
	Karmadactl = "karmadactl"
	Plugin     = "kubectl karmada"
)

// commandRow is a row in the table of commands. group is the group in which the help lists the command.
type commandRow struct {
	group string
	new   func(*command.Program) *cobra.Command
}

// groups are the groups of commands in the order in which the help lists them.
var groups = []*cobra.Group{
	{ID: "basic", Title: "Basic Commands:"},
	{ID: "registration", Title: "Cluster Registration Commands:"},
	{ID: "management", Title: "Cluster Management Commands:"},
	{ID: "troubleshooting", Title: "Troubleshooting and Debugging Commands:"},
	{ID: "advanced", Title: "Advanced Commands:"},
	{ID: "settings", Title: "Settings Commands:"},
	{ID: "other", Title: "Other Commands:"},
}

// commands are all commands in the order in which the help lists them.
var commands = []commandRow{
	{"basic", kubectl.NewExplain},
	{"basic", kubectl.NewGet},
	{"basic", search.New},
	{"basic", kubectl.NewCreate},
	{"basic", kubectl.NewDelete},
	{"basic", kubectl.NewEdit},
	{"registration", installation.NewInit},
	{"registration", installation.NewDeinit},
	{"registration", addons.New},
	{"registration", installation.NewCerts},
	{"registration", membership.NewJoin},
	{"registration", membership.NewUnjoin},
	{"registration", membership.NewToken},
	{"registration", membership.NewRegister},
	{"registration", membership.NewUnregister},
	{"management", membership.NewCordon},
	{"management", membership.NewUncordon},
	{"management", membership.NewTaint},
	{"management", rebalance.New},
	{"troubleshooting", kubectl.NewAttach},
	{"troubleshooting", kubectl.NewLogs},
	{"troubleshooting", kubectl.NewExec},
	{"troubleshooting", kubectl.NewDescribe},
	{"troubleshooting", interpret.New},
	{"troubleshooting", explain.NewTrace},
	{"troubleshooting", explain.NewTree},
	{"troubleshooting", explain.NewSimulate},
	{"troubleshooting", ownership.NewOrphans},
	{"troubleshooting", ownership.NewHeld},
	{"advanced", kubectl.NewApply},
	{"advanced", ownership.NewPromote},
	{"advanced", kubectl.NewTop},
	{"advanced", kubectl.NewPatch},
	{"settings", kubectl.NewLabel},
	{"settings", kubectl.NewAnnotate},
	{"settings", newCompletion},
	{"other", kubectl.NewAPIResources},
	{"other", kubectl.NewAPIVersions},
	{"other", newVersion},
	{"other", newOptions},
	{"other", installation.NewSteps},
}

// Run runs the program with the arguments of the process, and returns its exit code. name is the name of the program as
// users type it.
func Run(name string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first interrupt, a second interrupt ends the process immediately.
	context.AfterFunc(ctx, stop)
	runtimelog.SetLogger(klog.Background())
	defer klog.Flush()

	program := &command.Program{
		Name:      name,
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Style:     console.NewStyle(os.Stderr),
	}
	// Clients without a handler of their own would log the warnings of API servers.
	rest.SetDefaultWarningHandler(program)
	root := New(program)
	executed, err := root, console.ValidateCommand(root, os.Args[1:])
	if err == nil {
		executed, err = root.ExecuteContextC(ctx)
	}
	if err != nil {
		program.Messagef("%s %s", program.Style.Bad("error:"), errorMessage(ctx, err))
		var usage *command.UsageError
		if errors.As(err, &usage) {
			program.Messagef("See '%s --help'.", executed.CommandPath())
		}
	}
	return command.ExitCode(err)
}

// errorMessage returns the error's text for the user. After an interrupt, it replaces "context canceled" with
// "interrupted".
func errorMessage(ctx context.Context, err error) string {
	text := strings.TrimSpace(err.Error())
	if ctx.Err() != nil {
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	return text
}

// New returns the root command with all other commands.
func New(program *command.Program) *cobra.Command {
	root := &cobra.Command{
		// The first word of Use is the file name of the program. The file of the plugin is named
		// kubectl-karmada.
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
			silenceLibraries(cmd)
			program.IsCompletion = cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd
			return program.ValidateGlobalFlags()
		},
	}
	root.SetOut(program.Out)
	root.SetErr(program.ErrOut)
	root.SetIn(program.In)
	root.SetHelpCommand(newHelp(program))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.NewUsageError("%w", err) })
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
		fmt.Fprint(cmd.OutOrStdout(), helpText(cmd, program.Name, inOrder))
	})
	return root
}
