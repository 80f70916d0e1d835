package controllermanager

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
)

// AddFlags implements command.Options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	o.Connection.AddFlags(set)
	o.Election.AddFlags(set)
	o.Serving.AddFlags(set)
	o.AddSettings(set)
}

// AddSettings adds the flags of the controllers. They also apply when the controllers share a
// process with other components.
func (o *Options) AddSettings(set *pflag.FlagSet) {
	o.flags = set
	o.Backoff.AddFlags(set,
		"Unless --rate-limiter-max-delay is given, the maximum is 1m, and 30s for a Work whose cluster is unavailable.",
		"Applies to templates and policies, and only without the feature gate ControllerPriorityQueue: the priority queue reconciles changes before retries.")
	o.MemberRate.AddFlags(set, "cluster-api", "the API server of each member cluster")
	set.DurationVar(&o.Resync, "resync-period", o.Resync, "Period of the resync of all watched objects. 0 disables it: watches deliver every change.")
	o.addControllersFlag(set)
	o.addWorkersFlags(set)
	o.addClusterFlags(set)
	o.addEvictionFlags(set)
	flags.AddEventsFlag(set, &o.Settings.Controllers.Events)
	set.StringVar(&o.SkippedAPIs, "skipped-propagating-apis", o.SkippedAPIs,
		"APIs whose objects are never propagated, in addition to the APIs of Karmada: group, group/version, v1/kind or group/version/kind,kind; separated by semicolons.")
	set.StringSliceVar(&o.SkippedNamespaces, "skipped-propagating-namespaces", o.SkippedNamespaces,
		"Regular expressions. A namespace whose full name matches one of them is never propagated, and neither are its objects.")
	o.unimplemented.addFlags(set)
}

func (o *Options) addControllersFlag(set *pflag.FlagSet) {
	known, off := programs.ControllerNames()
	set.StringSliceVar(&o.Controllers, "controllers", o.Controllers, fmt.Sprintf(
		"Controllers to run: * enables all that are on by default, name enables a controller, -name disables it.\nAll controllers: %s.\nOff by default: %s.",
		strings.Join(known, ", "), strings.Join(off, ", ")))
}

// workersFlag is a flag for the number of parallel workers of a kind.
type workersFlag struct {
	flag, objects string
	count         *int
}

func (o *Options) workersFlags() []workersFlag {
	counts := &o.Settings.Controllers.Workers
	return []workersFlag{
		{"concurrent-cluster-propagation-policy-syncs", "ClusterPropagationPolicies", &counts.ClusterPolicies},
		{"concurrent-cluster-syncs", "Clusters", &counts.Clusters},
		{"concurrent-clusterresourcebinding-syncs", "ClusterResourceBindings", &counts.ClusterBindings},
		{"concurrent-dependent-resource-syncs", "dependencies of templates", &counts.Dependents},
		{"concurrent-namespace-syncs", "Namespaces, each for five clusters,", &o.NamespaceWorkers},
		{"concurrent-propagation-policy-syncs", "PropagationPolicies", &counts.Policies},
		{"concurrent-resource-template-syncs", "resource templates", &counts.Templates},
		{"concurrent-resourcebinding-syncs", "ResourceBindings", &counts.Bindings},
		{"concurrent-work-syncs", "Works of each cluster", &counts.Works},
	}
}

func (o *Options) addWorkersFlags(set *pflag.FlagSet) {
	for _, w := range o.workersFlags() {
		set.IntVar(w.count, w.flag, *w.count, "Number of "+w.objects+" that are reconciled in parallel.")
	}
}

func (o *Options) addClusterFlags(set *pflag.FlagSet) {
	settings := &o.Settings.Controllers
	set.DurationVar(&settings.StatusPeriod, "cluster-status-update-frequency", settings.StatusPeriod, "How often the health of each cluster is checked.")
	set.DurationVar(&settings.Thresholds.Failure, "cluster-failure-threshold", settings.Thresholds.Failure, "How long health checks must fail before a cluster is not Ready.")
	set.DurationVar(&settings.Thresholds.Success, "cluster-success-threshold", settings.Thresholds.Success, "How long health checks must succeed before a cluster is Ready again.")
	set.DurationVar(&settings.MemberCacheSyncTimeout, "cluster-cache-sync-timeout", settings.MemberCacheSyncTimeout,
		"Timeout of the initial cache sync of the nodes and Pods of a cluster, after which a failure is reported. 0 means no timeout.")
	set.DurationVar(&settings.Monitor.Period, "cluster-monitor-period", settings.Monitor.Period, "How often the heartbeats of pull mode clusters are checked.")
	set.DurationVar(&settings.Monitor.Grace.Period, "cluster-monitor-grace-period", settings.Monitor.Grace.Period,
		"How long the heartbeat of a pull mode cluster may be missing before its condition Ready becomes Unknown.")
	set.DurationVar(&settings.Monitor.Grace.Startup, "cluster-startup-grace-period", settings.Monitor.Grace.Startup,
		"The same grace period for a cluster that has never reported its status.")
	set.BoolVar(&settings.Inventory, "enable-cluster-resource-modeling", settings.Inventory,
		"Watch the nodes and Pods of clusters to report their resources and resource models.")
}

// Validate implements command.Options.
func (o *Options) Validate() error {
	known, _ := programs.ControllerNames()
	errs := []error{
		o.Connection.Validate(), o.Election.Validate(), o.Serving.Validate(), o.Backoff.Validate(), o.MemberRate.Validate(),
		programs.ValidateSelection("controllers", "controller", o.Controllers, known),
		flags.ValidatePositive("cluster-status-update-frequency", o.Settings.Controllers.StatusPeriod),
		flags.ValidateNotNegative("cluster-failure-threshold", o.Settings.Controllers.Thresholds.Failure),
		flags.ValidateNotNegative("cluster-success-threshold", o.Settings.Controllers.Thresholds.Success),
		flags.ValidateNotNegative("cluster-cache-sync-timeout", o.Settings.Controllers.MemberCacheSyncTimeout),
		flags.ValidatePositive("cluster-monitor-period", o.Settings.Controllers.Monitor.Period),
		flags.ValidatePositive("cluster-monitor-grace-period", o.Settings.Controllers.Monitor.Grace.Period),
		flags.ValidatePositive("cluster-startup-grace-period", o.Settings.Controllers.Monitor.Grace.Startup),
		flags.ValidateNotNegative("resync-period", o.Resync),
		o.validateEvictions(), o.unimplemented.validate(),
	}
	for _, w := range o.workersFlags() {
		if *w.count < 1 {
			errs = append(errs, fmt.Errorf("--%s %d: must be at least 1", w.flag, *w.count))
		}
	}
	if _, err := tenancy.ParseSkippedAPIs(o.SkippedAPIs); err != nil {
		errs = append(errs, fmt.Errorf("--skipped-propagating-apis: %w", err))
	}
	if _, err := tenancy.ParseSkippedNamespaces(o.SkippedNamespaces); err != nil {
		errs = append(errs, fmt.Errorf("--skipped-propagating-namespaces: %w", err))
	}
	return errors.Join(errs...)
}
