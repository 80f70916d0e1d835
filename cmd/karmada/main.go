// Karmada runs a complete Karmada control plane on one machine, with member clusters, for users who want to
// try Karmada. If it is called by the name of another Karmada program, it is that program.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/cli"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/standalone/multicall"
	"karmada.io/karmada/internal/standalone/up"
	"karmada.io/karmada/internal/version"
)

func main() {
	// This call comes first, because a Pod may run this program as any of the other programs.
	podenvironment.UsePodResolver()
	if program := multicall.Find(programs(), os.Args[0]); program != nil {
		os.Exit(program.Main())
	}
	up.TuneMemory(context.Background())
	removeGlobalFlags()
	up.SilenceLibraries()
	// A command in the foreground redirects os.Stderr to hide what libraries write. The command's errors are
	// still printed to the original standard error.
	stderr := os.Stderr
	if err := run(command(), os.Args[1:]); err != nil {
		fmt.Fprintln(stderr, console.NewStyle(stderr).Bad("error:"), err)
		os.Exit(up.ExitCode(err))
	}
}

// programs returns the programs that this binary becomes when it is called by their names.
func programs() []multicall.Program {
	return append(multicall.Programs(),
		multicall.Program{Name: "karmadactl", Main: func() int { return runCommandLine(cli.Karmadactl) }},
		multicall.Program{Name: "kubectl-karmada", Main: func() int { return runCommandLine(cli.Plugin) }},
	)
}

func runCommandLine(name string) int {
	removeGlobalFlags()
	return cli.Run(name)
}

// removeGlobalFlags removes flags that linked libraries add to the global flag set, which cobra would show
// as flags of this program.
func removeGlobalFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
}

func run(root *cobra.Command, args []string) error {
	// ValidateCommand must know these commands, but cobra would add them only in Execute.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if err := console.ValidateCommand(root, args); err != nil {
		return err
	}
	root.SetArgs(args)
	return root.Execute()
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "karmada",
		Short:         "Run applications over many Kubernetes clusters; try it on this machine with `karmada up`",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(up.NewFlagError)
	root.AddCommand(up.Commands()...)
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version", Args: up.NoArguments,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version.Line("karmada")) },
	})
	return root
}
