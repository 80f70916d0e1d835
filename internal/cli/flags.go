package cli

import (
	"flag"
	"fmt"
	"io"
	stdlog "log"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/cli/command"
)

// addGlobalFlags adds the flags of all commands, which select the kubeconfig and configure the log. The names of log flags
// have dashes instead of klog's underscores.
func addGlobalFlags(root *cobra.Command, program *command.Program) {
	program.AddGlobalFlags(root)
	log := flag.NewFlagSet("log", flag.ContinueOnError)
	klog.InitFlags(log)
	log.VisitAll(func(f *flag.Flag) {
		added := pflag.PFlagFromGoFlag(f)
		added.Name = strings.ReplaceAll(f.Name, "_", "-")
		root.PersistentFlags().AddFlag(added)
	})
}

// silenceLibraries discards the logs of libraries unless the user sets a log flag, because commands print everything that
// users need themselves.
func silenceLibraries(cmd *cobra.Command) {
	log, isLogging := flag.NewFlagSet("log", flag.ContinueOnError), false
	klog.InitFlags(log)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		isLogging = isLogging || log.Lookup(strings.ReplaceAll(f.Name, "-", "_")) != nil
	})
	if !isLogging {
		klog.SetLogger(logr.Discard())
		stdlog.SetOutput(io.Discard)
	}
}

func newOptions(program *command.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the options of all commands",
		Long:  "List the options that every command takes.",
		Example: program.Examples(`
			# List the options of all commands
			{{program}} options`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(program.Out, "The following options can be passed to any command:\n\n%s", cmd.InheritedFlags().FlagUsages())
			return nil
		},
	}
}
