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

// logging is how a program writes its log: to standard error in the way of
// Kubernetes components, or to files in the way of klog, if a flag of klog asks for
// anything that only klog does.
type logging struct {
	config *logsapi.LoggingConfiguration
	// ofKlog are all flags of klog, by their own names.
	ofKlog *flag.FlagSet
	// only are the names of those that only klog heeds, spelled with dashes.
	only map[string]bool
}

func newLogging() *logging {
	l := &logging{
		config: logsapi.NewLoggingConfiguration(),
		ofKlog: flag.NewFlagSet("klog", flag.ContinueOnError),
		only:   map[string]bool{},
	}
	klog.InitFlags(l.ofKlog)
	return l
}

func (l *logging) addFlags(flags *pflag.FlagSet) {
	logsapi.AddFlags(l.config, flags)
	l.ofKlog.VisitAll(func(f *flag.Flag) {
		added := pflag.PFlagFromGoFlag(f)
		added.Name = strings.ReplaceAll(f.Name, "_", "-")
		if flags.Lookup(added.Name) != nil {
			return
		}
		flags.AddFlag(added)
		l.only[added.Name] = true
	})
}

// asked returns the first flag given that only klog heeds, empty if there is none.
func (l *logging) asked(flags *pflag.FlagSet) string {
	var name string
	flags.Visit(func(f *pflag.Flag) {
		if name == "" && l.only[f.Name] {
			name = f.Name
		}
	})
	return name
}

func (l *logging) validate(flags *pflag.FlagSet, set *gates.Set) error {
	if err := logsapi.Validate(l.config, set, nil).ToAggregate(); err != nil {
		return fmt.Errorf("flags of the log: %w", err)
	}
	if name := l.asked(flags); name != "" && l.config.Options.Text.SplitStream {
		return fmt.Errorf("--log-text-split-stream and --%s cannot be given both: the log goes either to files or to two streams", name)
	}
	return nil
}

// apply makes the log of the process what the flags say. A process does it once.
func (l *logging) apply(flags *pflag.FlagSet, set featuregate.FeatureGate) error {
	if l.asked(flags) == "" {
		if err := logsapi.ValidateAndApply(l.config, set); err != nil {
			return fmt.Errorf("setting up the log: %w", err)
		}
		return nil
	}
	err := errors.Join(
		l.ofKlog.Set("v", logsapi.VerbosityLevelPflag(&l.config.Verbosity).String()),
		l.ofKlog.Set("vmodule", logsapi.VModuleConfigurationPflag(&l.config.VModule).String()),
	)
	if err != nil {
		return fmt.Errorf("setting up the log: %w", err)
	}
	klog.EnableContextualLogging(set.Enabled(logsapi.ContextualLogging))
	klog.StartFlushDaemon(l.config.FlushFrequency.Duration.Duration)
	return nil
}
