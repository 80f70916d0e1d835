// Package scheduling answers "what can be told to karmada-scheduler, and how does
// it run?".
//
// Flags about estimators are taken and checked, so that existing command lines
// work; this version asks none, and tells at the start which were given.
package scheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// Program is the executable.
func Program() command.Program {
	return command.Program{
		Name: programs.Scheduler,
		Help: "decides which clusters get a workload, and how many replicas in each",
		New:  func(set *gates.Set) command.Options { return Default(set) },
	}
}

// Options are what the program is told.
type Options struct {
	Connection flags.Connection
	Election   flags.Election
	Serving    flags.Serving
	Backoff    flags.Backoff
	// Plugins are the filters and scores that take part.
	Plugins []string
	// Settings are what the scheduler is told.
	Settings programs.Settings

	estimators estimators
	flags      *pflag.FlagSet
}

// Default are the options without flags.
func Default(set *gates.Set) *Options {
	settings := programs.DefaultSettings(set)
	return &Options{
		Connection: flags.DefaultConnection(), Election: flags.DefaultElection(programs.Scheduler),
		Serving: flags.DefaultServing(":10351"), Backoff: flags.DefaultBackoff(),
		Plugins: settings.Scheduler.Plugins, Settings: settings, estimators: defaultEstimators(),
	}
}

// plugins are the filters and scores that --plugins knows; those that come with a
// feature gate are last.
var plugins = []string{
	placement.PluginAPIEnablement, placement.PluginClusterAffinity, placement.PluginClusterEviction,
	placement.PluginClusterLocality, placement.PluginSpreadConstraint, placement.PluginTaintToleration,
	placement.PluginWorkloadAffinity, placement.PluginWorkloadAntiAffinity,
}

// withoutGate is how many of the plugins need no feature gate.
const withoutGate = 6

// AddFlags implements command.Options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	o.Connection.AddFlags(set)
	o.Connection.AddMasterFlag(set)
	o.Election.AddFlags(set)
	o.Election.AddNameFlag(set)
	o.Serving.AddFlags(set)
	o.AddSettings(set)
}

// AddSettings adds the flags that say how is scheduled: those that mean something
// where the scheduler shares a process with others, too.
func (o *Options) AddSettings(set *pflag.FlagSet) {
	o.flags = set
	o.Backoff.AddFlags(set,
		"Without the feature gate PriorityBasedScheduling only: with it, bindings wait from 1s to 10s.",
		"Without effect: each binding waits for itself.")
	set.StringVar(&o.Settings.Scheduler.Name, "scheduler-name", o.Settings.Scheduler.Name,
		"Only bindings whose spec.schedulerName is this are scheduled; default-scheduler takes those without a name, too.")
	set.BoolVar(&o.Settings.Scheduler.Features.EmptyWorkload, "enable-empty-workload-propagation", o.Settings.Scheduler.Features.EmptyWorkload,
		"Send workloads without replicas to the selected clusters, too.")
	set.StringSliceVar(&o.Plugins, "plugins", o.Plugins, fmt.Sprintf(
		"Filters and scores that take part: * is all, x is the plugin x, -x is all but x.\nAll plugins: %s; the last two need the feature gate WorkloadAffinity.",
		strings.Join(plugins, ", ")))
	o.estimators.addFlags(set)
}

// Validate implements command.Options.
func (o *Options) Validate() error {
	errs := []error{
		o.Connection.Validate(), o.Election.Validate(), o.Serving.Validate(), o.Backoff.Validate(),
		programs.CheckSelection("plugins", "plugin", o.Plugins, plugins), o.estimators.validate(),
	}
	if o.Settings.Scheduler.Name == "" {
		errs = append(errs, errors.New("--scheduler-name must not be empty: leave the flag out for default-scheduler"))
	}
	return errors.Join(errs...)
}

// Run implements command.Options.
func (o *Options) Run(ctx context.Context) error {
	o.TellIneffective(ctx)
	karmada, err := o.Connection.Config(programs.Scheduler)
	if err != nil {
		return err
	}
	return programs.Run(ctx, karmada, o.Host(), programs.Scheduler)
}

// TellIneffective says once in the log which flags were given for nothing.
func (o *Options) TellIneffective(ctx context.Context) {
	flags.TellIneffective(ctx, programs.Scheduler, o.ineffective())
}

// Host is what the options mean for the process.
func (o *Options) Host() programs.HostOptions {
	settings := o.Settings
	settings.Scheduler.Plugins = o.Plugins
	if !settings.Gates.Enabled(gates.PriorityBasedScheduling) {
		settings.Scheduler.BaseDelay, settings.Scheduler.MaxDelay = o.Backoff.BaseDelay, o.Backoff.MaxDelay
	}
	return programs.HostOptions{Election: o.Election, Serving: o.Serving, Settings: &settings}
}

// ineffective are the flags that were given for nothing.
func (o *Options) ineffective() []string {
	given := flags.Given(o.flags, append([]string{flags.BackoffQPS, flags.BackoffBucketSize}, o.estimators.added...)...)
	if o.Settings.Gates.Enabled(gates.PriorityBasedScheduling) {
		given = append(given, flags.Given(o.flags, "rate-limiter-base-delay", "rate-limiter-max-delay")...)
	}
	if !o.Settings.Gates.Enabled(gates.WorkloadAffinity) {
		for _, plugin := range plugins[withoutGate:] {
			if slices.Contains(o.Plugins, plugin) {
				given = append(given, "--plugins="+plugin)
			}
		}
	}
	return append(given, flags.GivenGates(o.Settings.Gates, gates.SchedulingOvercommitProtection)...)
}

// estimators are the flags about asking estimators.
type estimators struct {
	enabled, notForPull, insecure bool
	ca, certificate, key          string
	port                          int
	namespace, prefix             string
	timeout                       time.Duration

	added []string
}

func defaultEstimators() estimators {
	return estimators{
		port: 10352, namespace: clusterv1alpha1.NamespaceKarmadaSystem, prefix: "karmada-scheduler-estimator", timeout: 3 * time.Second,
	}
}

func (e *estimators) addFlags(set *pflag.FlagSet) {
	const withoutEffect = " Without effect in this version."
	own := pflag.NewFlagSet("estimators", pflag.ContinueOnError)
	own.BoolVar(&e.enabled, "enable-scheduler-estimator", e.enabled, "Ask the estimators of clusters how many replicas they have room for."+withoutEffect)
	own.BoolVar(&e.notForPull, "disable-scheduler-estimator-in-pull-mode", e.notForPull, "Do not ask the estimators of pull mode clusters."+withoutEffect)
	own.BoolVar(&e.insecure, "insecure-skip-estimator-verify", e.insecure, "Do not check the certificates of estimators."+withoutEffect)
	own.StringVar(&e.ca, "scheduler-estimator-ca-file", e.ca, "CA that signed the certificates of estimators."+withoutEffect)
	own.StringVar(&e.certificate, "scheduler-estimator-cert-file", e.certificate, "Certificate that is shown to estimators."+withoutEffect)
	own.StringVar(&e.key, "scheduler-estimator-key-file", e.key, "Key of that certificate."+withoutEffect)
	own.IntVar(&e.port, "scheduler-estimator-port", e.port, "Port of estimators."+withoutEffect)
	own.StringVar(&e.namespace, "scheduler-estimator-service-namespace", e.namespace, "Namespace of the Services of estimators."+withoutEffect)
	own.StringVar(&e.prefix, "scheduler-estimator-service-prefix", e.prefix, "What the names of those Services begin with, before -CLUSTER."+withoutEffect)
	own.DurationVar(&e.timeout, "scheduler-estimator-timeout", e.timeout, "How long an estimator may take to answer."+withoutEffect)
	own.VisitAll(func(f *pflag.Flag) {
		set.AddFlag(f)
		e.added = append(e.added, f.Name)
	})
}

const maxPort = 65535

func (e *estimators) validate() error {
	var errs []error
	if e.port < 0 || e.port > maxPort {
		errs = append(errs, fmt.Errorf("--scheduler-estimator-port %d: must be between 0 and %d", e.port, maxPort))
	}
	if e.timeout < 0 {
		errs = append(errs, fmt.Errorf("--scheduler-estimator-timeout %s: must not be negative", e.timeout))
	}
	return errors.Join(errs...)
}
