// Package command starts and ends the programs of Karmada: the flags that all programs have, the
// validation before a program runs, and the exit code of a program.
//
// The exit code is 2 for usage errors and 1 for all other errors. The packages that a program
// calls return their errors. Only this package prints an error and exits the process.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/version"
)

// Exit codes of a program.
const (
	Success    = 0
	Failure    = 1
	WrongUsage = 2
)

// Program is one executable.
type Program struct {
	// Name is the name of the executable, such as karmada-webhook.
	Name string
	// Help describes the program in one line.
	Help string
	// New returns the options of the program with their defaults. gates are the feature gates of
	// this process. --feature-gates sets them before Validate is called.
	New func(gates *gates.Set) Options
	// OwnGates means that the options add their own flag --feature-gates, or that the program has no
	// such flag.
	OwnGates bool
}

// Options are the parsed flags of a program.
type Options interface {
	AddFlags(flags *pflag.FlagSet)
	// Validate returns every mistake. Each error names the flag, its value and the remedy.
	Validate() error
	// Run runs until ctx ends. It returns nil if the program ended without an error.
	Run(ctx context.Context) error
}

// New returns the command of a program with the flags of the program, the common flags
// (logging, feature gates, profiling), and the subcommands version and completion.
func New(p Program) *cobra.Command {
	set := gates.New()
	options, logs, profile := p.New(set), newLogging(), profiling{Address: podenvironment.DefaultListenAddress(":6060")}
	cmd := &cobra.Command{
		Use:           p.Name,
		Short:         p.Help,
		Long:          p.Name + " " + p.Help + ".",
		Args:          noArguments,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(options.Validate(), logs.validate(cmd.Flags(), set)); err != nil {
				return usageError{err}
			}
			if err := logs.apply(cmd.Flags(), set); err != nil {
				return err
			}
			defer klog.Flush()
			return run(cmd.Context(), p.Name, options, profile)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := cmd.Flags()
	flags.SortFlags = true
	options.AddFlags(flags)
	if !p.OwnGates {
		set.AddFlag(flags)
	}
	logs.addFlags(flags)
	profile.addFlags(flags)
	cmd.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version", Args: noArguments,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version.Line(p.Name)) },
	})
	return cmd
}

// run runs the program and its profiling server. If one of them ends, it stops the other one.
func run(ctx context.Context, name string, options Options, profile profiling) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	wait, err := profile.start(ctx, stop)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "program", name, "version", version.Get().GitVersion)
	err = options.Run(ctx)
	stop()
	return errors.Join(err, wait())
}

// Main runs a program with the arguments of the process and returns its exit code. SIGINT or
// SIGTERM stops the program. A second signal kills the process.
func Main(p Program) int {
	podenvironment.UsePodResolver()
	// Linked libraries register flags in the global flag set. Without the next line, cobra would
	// add these flags to the flags of the program.
	pflag.CommandLine = pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore)
	return Exit(os.Stderr, p.Name, New(p).ExecuteContext(ctx))
}

// Exit prints the reason why a program ended, and returns the exit code of the program.
func Exit(stderr io.Writer, name string, err error) int {
	if err == nil {
		return Success
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(stderr, "error:", strings.TrimRight(line, "\n"))
	}
	if wrong := (usageError{}); errors.As(err, &wrong) {
		fmt.Fprintf(stderr, "See '%s --help' for usage.\n", name)
		return WrongUsage
	}
	return Failure
}

// usageError is a mistake in the command line, which a retry cannot resolve.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q: the program accepts only flags", args[0])}
	}
	return nil
}
