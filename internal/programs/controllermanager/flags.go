package controllermanager

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/domain/reach"
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

// AddSettings adds the flags that say what controllers do: those that mean
// something where they share a process with others, too.
func (o *Options) AddSettings(set *pflag.FlagSet) {
	o.flags = set
	o.Backoff.AddFlags(set,
		"Unless --rate-limiter-max-delay is given it is 1m at most, and 30s for a Work that waits for its cluster.",
		"For templates and policies, and without the feature gate ControllerPriorityQueue only: with it, changes need no room left for them.")
	o.Members.AddFlags(set, "cluster-api", "the API server of each member cluster")
	set.DurationVar(&o.Resync, "resync-period", o.Resync, "How often everything that is watched is handed out again. 0 is never: every change is told anyway.")
	o.addControllers(set)
	o.addWorkers(set)
	o.addClusters(set)
	o.addEvictions(set)
	flags.AddEvents(set, &o.Settings.Controllers.Events)
	set.StringVar(&o.SkippedAPIs, "skipped-propagating-apis", o.SkippedAPIs,
		"APIs whose objects are never propagated, besides Karmada's own: group, group/version, v1/kind or group/version/kind,kind; separated by semicolons.")
	set.StringSliceVar(&o.SkippedNamespaces, "skipped-propagating-namespaces", o.SkippedNamespaces,
		"Regular expressions; a namespace that one matches as a whole is never propagated, and nothing in it is.")
	o.later.addFlags(set)
}

func (o *Options) addControllers(set *pflag.FlagSet) {
	known, off := programs.ControllerNames()
	set.StringSliceVar(&o.Controllers, "controllers", o.Controllers, fmt.Sprintf(
		"Controllers to run: * is all that are on by default, x is the controller x, -x is all but x.\nAll controllers: %s.\nOff by default: %s.",
		strings.Join(known, ", "), strings.Join(off, ", ")))
}

// workers is a flag that says how many objects of a kind are worked on at once.
type workers struct {
	flag, what string
	count      *int
}

func (o *Options) workers() []workers {
	of := &o.Settings.Controllers.Workers
	return []workers{
		{"concurrent-cluster-propagation-policy-syncs", "ClusterPropagationPolicies", &of.ClusterPolicies},
		{"concurrent-cluster-syncs", "Clusters", &of.Clusters},
		{"concurrent-clusterresourcebinding-syncs", "ClusterResourceBindings", &of.ClusterBindings},
		{"concurrent-dependent-resource-syncs", "Resources that others depend on,", &of.Dependents},
		{"concurrent-namespace-syncs", "Namespaces, each for five clusters,", &o.Namespaces},
		{"concurrent-propagation-policy-syncs", "PropagationPolicies", &of.Policies},
		{"concurrent-resource-template-syncs", "Resource templates", &of.Templates},
		{"concurrent-resourcebinding-syncs", "ResourceBindings", &of.Bindings},
		{"concurrent-work-syncs", "Works of each cluster", &of.Works},
	}
}

func (o *Options) addWorkers(set *pflag.FlagSet) {
	for _, w := range o.workers() {
		set.IntVar(w.count, w.flag, *w.count, w.what+" that are worked on at once.")
	}
}

func (o *Options) addClusters(set *pflag.FlagSet) {
	of := &o.Settings.Controllers
	set.DurationVar(&of.StatusPeriod, "cluster-status-update-frequency", of.StatusPeriod, "How often the status of each cluster is looked at.")
	set.DurationVar(&of.Thresholds.Failure, "cluster-failure-threshold", of.Thresholds.Failure, "How long a cluster must be failing before it counts as not ready.")
	set.DurationVar(&of.Thresholds.Success, "cluster-success-threshold", of.Thresholds.Success, "How long a cluster must be healthy again before it counts as ready.")
	set.DurationVar(&of.MemberSettle, "cluster-cache-sync-timeout", of.MemberSettle,
		"How long the first lists of a cluster's nodes and Pods may take before that is told as a failure. 0 is for ever.")
	set.DurationVar(&of.Monitor.Period, "cluster-monitor-period", of.Monitor.Period, "How often it is checked which pull mode clusters are silent.")
	set.DurationVar(&of.Monitor.Grace.Period, "cluster-monitor-grace-period", of.Monitor.Grace.Period,
		"How long a pull mode cluster may be silent before its condition Ready is Unknown.")
	set.DurationVar(&of.Monitor.Grace.Startup, "cluster-startup-grace-period", of.Monitor.Grace.Startup,
		"The same for one that has never reported.")
	set.BoolVar(&of.Inventory, "enable-cluster-resource-modeling", of.Inventory,
		"Watch the nodes and Pods of clusters to sum up their resources and to grade their nodes.")
}

// Validate implements command.Options.
func (o *Options) Validate() error {
	known, _ := programs.ControllerNames()
	errs := []error{
		o.Connection.Validate(), o.Election.Validate(), o.Serving.Validate(), o.Backoff.Validate(), o.Members.Validate(),
		programs.CheckSelection("controllers", "controller", o.Controllers, known),
		flags.Positive("cluster-status-update-frequency", o.Settings.Controllers.StatusPeriod),
		flags.NotNegative("cluster-failure-threshold", o.Settings.Controllers.Thresholds.Failure),
		flags.NotNegative("cluster-success-threshold", o.Settings.Controllers.Thresholds.Success),
		flags.NotNegative("cluster-cache-sync-timeout", o.Settings.Controllers.MemberSettle),
		flags.Positive("cluster-monitor-period", o.Settings.Controllers.Monitor.Period),
		flags.Positive("cluster-monitor-grace-period", o.Settings.Controllers.Monitor.Grace.Period),
		flags.Positive("cluster-startup-grace-period", o.Settings.Controllers.Monitor.Grace.Startup),
		flags.NotNegative("resync-period", o.Resync),
		o.validateEvictions(), o.later.validate(),
	}
	for _, w := range o.workers() {
		if *w.count < 1 {
			errs = append(errs, fmt.Errorf("--%s %d: must be at least 1", w.flag, *w.count))
		}
	}
	if _, err := reach.ParseSkippedAPIs(o.SkippedAPIs); err != nil {
		errs = append(errs, fmt.Errorf("--skipped-propagating-apis: %w", err))
	}
	if _, err := reach.ParseSkippedNamespaces(o.SkippedNamespaces); err != nil {
		errs = append(errs, fmt.Errorf("--skipped-propagating-namespaces: %w", err))
	}
	return errors.Join(errs...)
}
