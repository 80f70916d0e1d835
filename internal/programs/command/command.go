// Package command answers "how does a program of Karmada start, and how does it
// end?": the flags that all of them have, what is checked before anything runs,
// and how the process ends.
//
// Usage errors end with 2, anything else that went wrong with 1. Nobody below
// this package prints an error or exits.
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

	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/version"
)

// Exit codes of a program.
const (
	Done       = 0
	Failure    = 1
	WrongUsage = 2
)

// Program is one executable.
type Program struct {
	// Name is what it is called, such as karmada-webhook.
	Name string
	// Help says what it does, in one line.
	Help string
	// New makes its options with their defaults. The gates are those of this
	// process; --feature-gates sets them before Validate is called.
	New func(gates *gates.Set) Options
	// OwnGates says that the options add a flag --feature-gates of their own.
	OwnGates bool
}

// Options are what a program is told by flags.
type Options interface {
	AddFlags(flags *pflag.FlagSet)
	// Validate returns every mistake, each naming flag, value and remedy.
	Validate() error
	// Run runs until ctx ends, and returns nil on a clean end.
	Run(ctx context.Context) error
}

// New makes the command of a program: its own flags and those that all have
// (logging, feature gates, profiling), and the subcommands version and completion.
func New(p Program) *cobra.Command {
	set := gates.New()
	options, logs, profile := p.New(set), newLogging(), profiling{Address: flags.OwnAddress(":6060")}
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

// run runs the program with its profiling beside it. Whichever ends first ends
// the other one.
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

// Main runs a program with the arguments of the process until it ends or the
// process is told to by SIGINT or SIGTERM, and returns its exit code. A second
// signal kills the process.
func Main(p Program) int {
	// Linked libraries put flags of their own on the global set, which cobra would
	// offer as ours.
	pflag.CommandLine = pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore)
	return Exit(os.Stderr, p.Name, New(p).ExecuteContext(ctx))
}

// Exit tells why a program ended and returns its exit code.
func Exit(told io.Writer, name string, err error) int {
	if err == nil {
		return Done
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(told, "error:", strings.TrimRight(line, "\n"))
	}
	if wrong := (usageError{}); errors.As(err, &wrong) {
		fmt.Fprintf(told, "See '%s --help' for usage.\n", name)
		return WrongUsage
	}
	return Failure
}

// usageError is a mistake in how a program was called, which no retry mends.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q: everything is told by flags", args[0])}
	}
	return nil
}
