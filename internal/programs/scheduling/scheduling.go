// Package scheduling answers "which flags does karmada-scheduler have, and how does it run?".
//
// Flags of estimators are accepted and validated, so that existing command lines work. This
// version does not call estimators, and logs at the start which of the flags were given.
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
		Help: "selects the clusters of each workload, and the replicas in each cluster",
		New:  func(set *gates.Set) command.Options { return Default(set) },
	}
}

// Options are the parsed flags of the program.
type Options struct {
	Connection flags.Connection
	Election   flags.Election
	Serving    flags.Serving
	Backoff    flags.Backoff
	// Plugins selects the filters and scores, in the format of --plugins.
	Plugins []string
	// Settings are the settings of the scheduler.
	Settings programs.Settings

	estimators estimatorFlags
	flags      *pflag.FlagSet
}

// Default returns the default options.
func Default(set *gates.Set) *Options {
	settings := programs.DefaultSettings(set)
	return &Options{
		Connection: flags.DefaultConnection(), Election: flags.DefaultElection(programs.Scheduler),
		Serving: flags.DefaultServing(":10351"), Backoff: flags.DefaultBackoff(),
		Plugins: settings.Scheduler.Plugins, Settings: settings, estimators: defaultEstimatorFlags(),
	}
}

// plugins are the filters and scores that --plugins accepts. Plugins that require a feature
// gate are last.
var plugins = []string{
	placement.PluginAPIEnablement, placement.PluginClusterAffinity, placement.PluginClusterEviction,
	placement.PluginClusterLocality, placement.PluginSpreadConstraint, placement.PluginTaintToleration,
	placement.PluginWorkloadAffinity, placement.PluginWorkloadAntiAffinity,
}

// ungatedPlugins is the number of plugins that require no feature gate.
const ungatedPlugins = 6

// AddFlags implements command.Options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	o.Connection.AddFlags(set)
	o.Connection.AddMasterFlag(set)
	o.Election.AddFlags(set)
	o.Election.AddNameFlag(set)
	o.Serving.AddFlags(set)
	o.AddSettings(set)
}

// AddSettings adds the flags of the scheduler. They also apply when the scheduler shares a
// process with other components.
func (o *Options) AddSettings(set *pflag.FlagSet) {
	o.flags = set
	o.Backoff.AddFlags(set,
		"Applies only without the feature gate PriorityBasedScheduling: with it, the delay is between 1s and 10s.",
		"Has no effect: each binding has its own backoff.")
	set.StringVar(&o.Settings.Scheduler.Name, "scheduler-name", o.Settings.Scheduler.Name,
		"Schedule only bindings with this spec.schedulerName. default-scheduler also schedules bindings without a name.")
	set.BoolVar(&o.Settings.Scheduler.Features.EmptyWorkload, "enable-empty-workload-propagation", o.Settings.Scheduler.Features.EmptyWorkload,
		"Propagate workloads without replicas to the selected clusters, too.")
	set.StringSliceVar(&o.Plugins, "plugins", o.Plugins, fmt.Sprintf(
		"Filters and scores to use: * enables all, name enables a plugin, -name disables it.\nAll plugins: %s; the last two require the feature gate WorkloadAffinity.",
		strings.Join(plugins, ", ")))
	o.estimators.addFlags(set)
}

// Validate implements command.Options.
func (o *Options) Validate() error {
	errs := []error{
		o.Connection.Validate(), o.Election.Validate(), o.Serving.Validate(), o.Backoff.Validate(),
		programs.ValidateSelection("plugins", "plugin", o.Plugins, plugins), o.estimators.validate(),
	}
	if o.Settings.Scheduler.Name == "" {
		errs = append(errs, errors.New("--scheduler-name must not be empty: omit the flag for default-scheduler"))
	}
	return errors.Join(errs...)
}

// Run implements command.Options.
func (o *Options) Run(ctx context.Context) error {
	o.LogIneffectiveFlags(ctx)
	karmada, err := o.Connection.Config(programs.Scheduler)
	if err != nil {
		return err
	}
	return programs.Run(ctx, karmada, o.HostOptions(), programs.Scheduler)
}

// LogIneffectiveFlags logs which of the given flags have no effect.
func (o *Options) LogIneffectiveFlags(ctx context.Context) {
	flags.LogIneffective(ctx, programs.Scheduler, o.ineffectiveFlags())
}

// HostOptions converts the options to those of the host.
func (o *Options) HostOptions() programs.HostOptions {
	settings := o.Settings
	settings.Scheduler.Plugins = o.Plugins
	if !settings.Gates.Enabled(gates.PriorityBasedScheduling) {
		settings.Scheduler.BaseDelay, settings.Scheduler.MaxDelay = o.Backoff.BaseDelay, o.Backoff.MaxDelay
	}
	return programs.HostOptions{Election: o.Election, Serving: o.Serving, Settings: &settings}
}

// ineffectiveFlags returns the given flags that have no effect.
func (o *Options) ineffectiveFlags() []string {
	given := flags.GivenFlags(o.flags, append([]string{flags.BackoffQPS, flags.BackoffBucketSize}, o.estimators.names...)...)
	if o.Settings.Gates.Enabled(gates.PriorityBasedScheduling) {
		given = append(given, flags.GivenFlags(o.flags, "rate-limiter-base-delay", "rate-limiter-max-delay")...)
	}
	if !o.Settings.Gates.Enabled(gates.WorkloadAffinity) {
		for _, plugin := range plugins[ungatedPlugins:] {
			if slices.Contains(o.Plugins, plugin) {
				given = append(given, "--plugins="+plugin)
			}
		}
	}
	return append(given, flags.GivenGates(o.Settings.Gates, gates.SchedulingOvercommitProtection)...)
}

// estimatorFlags are the flags of the clients of estimators. This version does not implement
// them.
type estimatorFlags struct {
	enabled, skipPullMode, insecure bool
	ca, certificate, key            string
	port                            int
	namespace, prefix               string
	timeout                         time.Duration

	names []string
}

func defaultEstimatorFlags() estimatorFlags {
	return estimatorFlags{
		port: 10352, namespace: clusterv1alpha1.NamespaceKarmadaSystem, prefix: "karmada-scheduler-estimator", timeout: 3 * time.Second,
	}
}

func (e *estimatorFlags) addFlags(set *pflag.FlagSet) {
	const noEffect = " Has no effect in this version."
	added := pflag.NewFlagSet("estimators", pflag.ContinueOnError)
	added.BoolVar(&e.enabled, "enable-scheduler-estimator", e.enabled, "Call the estimators of clusters for the number of replicas that fit."+noEffect)
	added.BoolVar(&e.skipPullMode, "disable-scheduler-estimator-in-pull-mode", e.skipPullMode, "Do not call the estimators of pull mode clusters."+noEffect)
	added.BoolVar(&e.insecure, "insecure-skip-estimator-verify", e.insecure, "Do not verify the certificates of estimators."+noEffect)
	added.StringVar(&e.ca, "scheduler-estimator-ca-file", e.ca, "File with the CA of the certificates of estimators."+noEffect)
	added.StringVar(&e.certificate, "scheduler-estimator-cert-file", e.certificate, "File with the client certificate for estimators."+noEffect)
	added.StringVar(&e.key, "scheduler-estimator-key-file", e.key, "File with the key of the client certificate."+noEffect)
	added.IntVar(&e.port, "scheduler-estimator-port", e.port, "Port of estimators."+noEffect)
	added.StringVar(&e.namespace, "scheduler-estimator-service-namespace", e.namespace, "Namespace of the Services of estimators."+noEffect)
	added.StringVar(&e.prefix, "scheduler-estimator-service-prefix", e.prefix, "Prefix of the names of the Services of estimators, before -CLUSTER."+noEffect)
	added.DurationVar(&e.timeout, "scheduler-estimator-timeout", e.timeout, "Timeout of requests to estimators."+noEffect)
	added.VisitAll(func(f *pflag.Flag) {
		set.AddFlag(f)
		e.names = append(e.names, f.Name)
	})
}

const maxPort = 65535

func (e *estimatorFlags) validate() error {
	var errs []error
	if e.port < 0 || e.port > maxPort {
		errs = append(errs, fmt.Errorf("--scheduler-estimator-port %d: must be between 0 and %d", e.port, maxPort))
	}
	if e.timeout < 0 {
		errs = append(errs, fmt.Errorf("--scheduler-estimator-timeout %s: must not be negative", e.timeout))
	}
	return errors.Join(errs...)
}
