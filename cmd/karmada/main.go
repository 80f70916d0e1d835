// Karmada runs a whole Karmada control plane, and member clusters to try it
// with, on one machine.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/standalone/up"
	"karmada.io/karmada/internal/version"
)

func main() {
	up.TuneMemory(context.Background())
	// Linked libraries put flags of their own on the global set, which cobra
	// would offer as ours.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
	// What runs in the foreground sends what libraries write there elsewhere.
	stderr := os.Stderr
	root := command()
	err := root.Execute()
	if err == nil {
		return
	}
	if _, _, unknown := root.Find(os.Args[1:]); unknown != nil {
		err = up.UnknownCommand(root, os.Args[1:])
	}
	fmt.Fprintln(stderr, "error:", err)
	os.Exit(up.ExitCode(err))
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "karmada",
		Short:         "Run applications over many Kubernetes clusters; try it on this machine with `karmada up`",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(up.WrongFlag)
	root.AddCommand(up.Commands()...)
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version", Args: up.NoArguments,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version.Line("karmada")) },
	})
	return root
}
