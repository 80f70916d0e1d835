// Package controllermanager answers "which flags does karmada-controller-manager have, and how
// does it run?".
//
// Flags of controllers that this version does not implement are accepted and validated, so that
// existing command lines work. The program logs at the start which of them were given.
package controllermanager

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// Program is the executable.
func Program() command.Program {
	return command.Program{
		Name: programs.ControllerManager,
		Help: "propagates templates to member clusters and aggregates their status",
		New:  func(set *gates.Set) command.Options { return Default(set) },
	}
}

// Options are the parsed flags of the program.
type Options struct {
	Connection flags.Connection
	Election   flags.Election
	Serving    flags.Serving
	Backoff    flags.Backoff
	// MemberRate limits the requests to each member.
	MemberRate flags.Rate
	// Resync is the period of the resync of all objects. 0 disables it.
	Resync time.Duration
	// Controllers selects the controllers to run, in the format of --controllers.
	Controllers []string
	// NamespaceWorkers is the number of namespaces that are reconciled in parallel.
	NamespaceWorkers int
	// Settings are the settings of the controllers.
	Settings programs.Settings
	// SkippedAPIs and SkippedNamespaces are never propagated.
	SkippedAPIs       string
	SkippedNamespaces []string

	unimplemented unimplementedFlags
	flags         *pflag.FlagSet
}

// Default returns the default options.
func Default(set *gates.Set) *Options {
	settings := programs.DefaultSettings(set)
	return &Options{
		Connection: flags.DefaultConnection(), Election: flags.DefaultElection(programs.ControllerManager),
		Serving: flags.DefaultServing(":10357"), Backoff: flags.DefaultBackoff(), MemberRate: flags.DefaultRate(),
		Controllers: settings.Controllers.Selected, NamespaceWorkers: 1, Settings: settings,
		SkippedNamespaces: []string{"kube-.*"}, unimplemented: defaultUnimplementedFlags(),
	}
}

// Run implements command.Options.
func (o *Options) Run(ctx context.Context) error {
	o.LogIneffectiveFlags(ctx)
	karmada, err := o.Connection.Config(programs.ControllerManager)
	if err != nil {
		return err
	}
	host, err := o.HostOptions()
	if err != nil {
		return err
	}
	return programs.Run(ctx, karmada, host, programs.ControllerManager)
}

// LogIneffectiveFlags logs which of the given flags have no effect.
func (o *Options) LogIneffectiveFlags(ctx context.Context) {
	flags.LogIneffective(ctx, programs.ControllerManager, o.ineffectiveFlags())
}

// HostOptions converts the options to those of the host.
func (o *Options) HostOptions() (programs.HostOptions, error) {
	settings := o.Settings
	controllers := &settings.Controllers
	skipped, err := tenancy.ParseSkippedAPIs(o.SkippedAPIs)
	if err != nil {
		return programs.HostOptions{}, err
	}
	controllers.Selected, controllers.SkippedAPIs = o.Controllers, skipped
	controllers.Workers.NamespaceClusterPairs = o.NamespaceWorkers * programs.DefaultSettings(settings.Gates).Controllers.Workers.NamespaceClusterPairs
	controllers.Backoff, controllers.MemberBackoff = o.Backoff.ForQueue(controllers.Backoff, o.flags), o.Backoff.ForQueue(controllers.MemberBackoff, o.flags)
	controllers.RetryRate, controllers.RetryBurst = o.Backoff.QPS, o.Backoff.BucketSize
	host := programs.HostOptions{
		Election: o.Election, Serving: o.Serving, Resync: o.Resync,
		SkippedNamespaces: o.SkippedNamespaces, Settings: &settings,
	}
	if qps, burst := o.MemberRate.Limit(); qps > 0 {
		host.MemberThrottle = member.Throttle{QPS: qps, Burst: burst}
	}
	return host, nil
}

// ineffectiveFlags returns the given flags that have no effect.
func (o *Options) ineffectiveFlags() []string {
	given := flags.GivenFlags(o.flags, o.unimplemented.names...)
	for _, controller := range programs.UnimplementedControllers(o.Controllers) {
		given = append(given, "--controllers="+controller)
	}
	if o.Settings.Gates.Enabled(gates.ControllerPriorityQueue) {
		given = append(given, flags.GivenFlags(o.flags, flags.BackoffQPS, flags.BackoffBucketSize)...)
	}
	if !o.Settings.Gates.Enabled(gates.Failover) {
		given = append(given, flags.GivenFlags(o.flags, "enable-no-execute-taint-eviction", "no-execute-taint-eviction-purge-mode", "resource-eviction-rate")...)
	}
	return append(given, flags.GivenGates(o.Settings.Gates, unimplementedGates...)...)
}

// unimplementedGates are the gates of controllers that this version does not implement.
var unimplementedGates = []featuregate.Feature{
	gates.MultiClusterService, gates.FederatedQuotaEnforcement,
}
