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
	root := &cobra.Command{
		Use:           "karmada",
		Short:         "Run applications over many Kubernetes clusters; try it on this machine with `karmada up`",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return up.Wrong(err) })
	root.AddCommand(up.Commands()...)
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version.Line("karmada")) },
	})
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(up.ExitCode(err))
	}
}
