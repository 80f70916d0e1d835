package command

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/programs/gates"
)

// logging configures the log of a program. The log is written to standard error in the format of
// Kubernetes components. If a flag that only klog implements is given, klog writes the log
// instead, for example to files.
type logging struct {
	config *logsapi.LoggingConfiguration
	// klogFlags are all flags of klog, with the names that klog gives them.
	klogFlags *flag.FlagSet
	// klogOnly contains the names of the flags that only klog implements, spelled with dashes.
	klogOnly map[string]bool
}

func newLogging() *logging {
	l := &logging{
		config:    logsapi.NewLoggingConfiguration(),
		klogFlags: flag.NewFlagSet("klog", flag.ContinueOnError),
		klogOnly:  map[string]bool{},
	}
	klog.InitFlags(l.klogFlags)
	return l
}

func (l *logging) addFlags(flags *pflag.FlagSet) {
	logsapi.AddFlags(l.config, flags)
	l.klogFlags.VisitAll(func(f *flag.Flag) {
		added := pflag.PFlagFromGoFlag(f)
		added.Name = strings.ReplaceAll(f.Name, "_", "-")
		if flags.Lookup(added.Name) != nil {
			return
		}
		flags.AddFlag(added)
		l.klogOnly[added.Name] = true
	})
}

// firstKlogOnlyFlag returns the name of the first given flag that only klog implements. It returns
// an empty string if no such flag is given.
func (l *logging) firstKlogOnlyFlag(flags *pflag.FlagSet) string {
	var name string
	flags.Visit(func(f *pflag.Flag) {
		if name == "" && l.klogOnly[f.Name] {
			name = f.Name
		}
	})
	return name
}

func (l *logging) validate(flags *pflag.FlagSet, set *gates.Set) error {
	if err := logsapi.Validate(l.config, set, nil).ToAggregate(); err != nil {
		return fmt.Errorf("validating the logging flags: %w", err)
	}
	if name := l.firstKlogOnlyFlag(flags); name != "" && l.config.Options.Text.SplitStream {
		return fmt.Errorf("--log-text-split-stream and --%s exclude each other: the log goes either to files or to two streams", name)
	}
	return nil
}

// apply configures the log of the process according to the flags. It is called once in a process.
func (l *logging) apply(flags *pflag.FlagSet, set featuregate.FeatureGate) error {
	if l.firstKlogOnlyFlag(flags) == "" {
		if err := logsapi.ValidateAndApply(l.config, set); err != nil {
			return fmt.Errorf("configuring the log: %w", err)
		}
		return nil
	}
	err := errors.Join(
		l.klogFlags.Set("v", logsapi.VerbosityLevelPflag(&l.config.Verbosity).String()),
		l.klogFlags.Set("vmodule", logsapi.VModuleConfigurationPflag(&l.config.VModule).String()),
	)
	if err != nil {
		return fmt.Errorf("configuring the log: %w", err)
	}
	klog.EnableContextualLogging(set.Enabled(logsapi.ContextualLogging))
	klog.StartFlushDaemon(l.config.FlushFrequency.Duration.Duration)
	return nil
}
