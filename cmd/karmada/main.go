// Karmada runs a complete Karmada control plane on one machine, with member clusters for users who
// want to try Karmada.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/standalone/up"
	"karmada.io/karmada/internal/version"
)

func main() {
	up.TuneMemory(context.Background())
	// Linked libraries add their flags to the global flag set. Cobra would show these flags as
	// flags of this program.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
	// A command in the foreground replaces os.Stderr, to redirect what libraries write. Errors of
	// the command are still printed to the original standard error.
	stderr := os.Stderr
	if err := run(command(), os.Args[1:]); err != nil {
		fmt.Fprintln(stderr, console.NewStyle(stderr).Bad("error:"), err)
		os.Exit(up.ExitCode(err))
	}
}

func run(root *cobra.Command, args []string) error {
	// CheckCommand must know these commands, but cobra would add them only in Execute.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if err := console.CheckCommand(root, args, nil); err != nil {
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
