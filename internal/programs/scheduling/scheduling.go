// Package scheduling runs karmada-scheduler, karmada-descheduler, and karmada-scheduler-estimator, which
// reports the free capacity of one member to the other two programs.
package scheduling

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/scheduler"
)

// The names of the flags that only the scheduler has.
const (
	flagEnableEstimators = "enable-scheduler-estimator"
	flagSkipPullMode     = "disable-scheduler-estimator-in-pull-mode"
)

// Options are the options of the scheduler that flags set.
type Options struct {
	// Scheduler contains the options of the scheduler, except for the options that depend on
	// feature gates or on the backoff.
	Scheduler scheduler.Options
	// Backoff is the backoff of the queue. It has no effect if the feature gate
	// PriorityBasedScheduling is enabled.
	Backoff flags.Backoff
	// EnableEstimators makes the scheduler call accurate estimators. SkipPullModeEstimators
	// excludes clusters in pull mode.
	EnableEstimators, SkipPullModeEstimators bool
	Estimators                               EstimatorClientOptions

	gates *gates.Set
	flags *pflag.FlagSet
}

// Default returns the default options. The feature gates may change until the component is added
// to a host.
func Default(set *gates.Set) *Options {
	return &Options{
		Scheduler: scheduler.DefaultOptions(), Backoff: flags.DefaultBackoff(), Estimators: DefaultEstimatorClientOptions(),
		gates: set,
	}
}

// New returns the component with its default options.
func New(set *gates.Set) programs.Component { return Default(set).Component() }

// Component returns the component with these options.
func (o *Options) Component() programs.Component {
	return programs.Component{
		Name: programs.Scheduler, Help: "selects the clusters of each workload, and the replicas in each cluster",
		RequiredKinds: []client.Object{
			&clusterv1alpha1.Cluster{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{},
			&policyv1alpha1.FederatedResourceQuota{},
		},
		Options: o, IneffectiveFlags: o.ineffectiveFlags, Add: o.add,
		NewProgram: programs.Process{HealthAddress: ":10351", HasMasterFlag: true, HasElectionNameFlag: true}.New,
	}
}

func (o *Options) add(h *programs.Host) error {
	table := []estimators.Row{
		{Name: "resource summary", Estimator: estimators.Summary{Models: h.Gates.Enabled(gates.CustomizedClusterResourceModeling)}},
	}
	if _, err := RegisterEstimatorMetrics(); err != nil {
		return err
	}
	if o.EnableEstimators {
		pool, err := o.Estimators.AddPool(h, o.SkipPullModeEstimators)
		if err != nil {
			return err
		}
		table = append(table, estimators.Row{Name: "estimator", Timeout: o.Estimators.RequestTimeout(), Estimator: pool})
	}
	own := o.schedulerOptions(h.Gates)
	own.Placer = h.Placer
	return scheduler.Add(h.Manager, table, own)
}

// schedulerOptions returns the options of the scheduler for the feature gates of a process.
func (o *Options) schedulerOptions(set *gates.Set) scheduler.Options {
	own := o.Scheduler
	own.Features.MultiplePodTemplates = set.Enabled(gates.MultiplePodTemplatesScheduling)
	own.Features.WorkloadAffinity = set.Enabled(gates.WorkloadAffinity)
	own.OvercommitProtection = set.Enabled(gates.SchedulingOvercommitProtection)
	own.PriorityScheduling = set.Enabled(gates.PriorityBasedScheduling)
	if !own.PriorityScheduling {
		own.BaseDelay, own.MaxDelay = o.Backoff.BaseDelay, o.Backoff.MaxDelay
	}
	return own
}

// ungatedPlugins returns the names of the filters and scores that require no feature gate.
func ungatedPlugins() []string { return placement.PluginNames(placement.Features{}) }

// gatedPlugins returns the names of the filters and scores that require the feature gate
// WorkloadAffinity.
func gatedPlugins() []string {
	all, ungated := placement.PluginNames(placement.Features{WorkloadAffinity: true}), ungatedPlugins()
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(ungated, name) })
}

// knownPlugins returns the names of the filters and scores that --plugins accepts. Those that
// require a feature gate are last.
func knownPlugins() []string { return append(ungatedPlugins(), gatedPlugins()...) }

// AddFlags implements programs.Options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	o.flags = set
	o.Backoff.AddFlags(set,
		"Applies only without the feature gate PriorityBasedScheduling: with it, the delay is between 1s and 10s.",
		"Has no effect: each binding has its own backoff.")
	set.StringVar(&o.Scheduler.Name, "scheduler-name", o.Scheduler.Name,
		"Name of this scheduler. It schedules only the bindings that have this name in spec.schedulerName. default-scheduler also schedules bindings without a name.")
	set.BoolVar(&o.Scheduler.Features.EmptyWorkload, "enable-empty-workload-propagation", o.Scheduler.Features.EmptyWorkload,
		"Whether workloads without replicas are propagated to the selected clusters too.")
	set.StringSliceVar((*[]string)(&o.Scheduler.Plugins), "plugins", o.Scheduler.Plugins, fmt.Sprintf(
		"Filter and score plugins to run. * enables all plugins, foo enables the plugin foo, and -foo disables it.\nAll plugins: %s. The last two require the feature gate WorkloadAffinity.",
		strings.Join(knownPlugins(), ", ")))
	set.BoolVar(&o.EnableEstimators, flagEnableEstimators, o.EnableEstimators,
		"Whether the scheduler calls the estimators of clusters to get the number of replicas that fit. If not, it uses only the resource summaries of clusters.")
	set.BoolVar(&o.SkipPullModeEstimators, flagSkipPullMode, o.SkipPullModeEstimators,
		"Whether the scheduler skips the estimators of clusters in pull mode.")
	o.Estimators.AddFlags(set)
	flags.MarkWithoutEffect(set, flags.BackoffQPS, flags.BackoffBucketSize)
}

// Validate implements programs.Options.
func (o *Options) Validate() error {
	errs := []error{o.Backoff.Validate(), o.Estimators.Validate(),
		programs.ValidateSelection("plugins", "plugin", o.Scheduler.Plugins, knownPlugins())}
	if o.Scheduler.Name == "" {
		errs = append(errs, errors.New("--scheduler-name must not be empty: omit the flag for default-scheduler"))
	}
	return errors.Join(errs...)
}

// ineffectiveFlags returns the flags that the user set and that have no effect.
func (o *Options) ineffectiveFlags() []string {
	given := flags.GivenWithoutEffect(o.flags)
	if o.gates.Enabled(gates.PriorityBasedScheduling) {
		given = append(given, flags.GivenFlags(o.flags, "rate-limiter-base-delay", "rate-limiter-max-delay")...)
	}
	if !o.EnableEstimators {
		given = append(given, flags.GivenFlags(o.flags, flagSkipPullMode)...)
		given = append(given, o.Estimators.Given()...)
	}
	if !o.gates.Enabled(gates.WorkloadAffinity) {
		for _, plugin := range gatedPlugins() {
			if slices.Contains(o.Scheduler.Plugins, plugin) {
				given = append(given, "--plugins="+plugin)
			}
		}
	}
	return given
}
