// Package controllermanager answers "what can be told to
// karmada-controller-manager, and how does it run?".
//
// Flags of controllers that this version does not have are taken and checked, so
// that existing command lines work; those that were given are told at the start.
package controllermanager

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// Program is the executable.
func Program() command.Program {
	return command.Program{
		Name: programs.ControllerManager,
		Help: "turns templates into objects of member clusters and their status back",
		New:  func(set *gates.Set) command.Options { return Default(set) },
	}
}

// Options are what the program is told.
type Options struct {
	Connection flags.Connection
	Election   flags.Election
	Serving    flags.Serving
	Backoff    flags.Backoff
	// Members limits the requests to each member.
	Members flags.Rate
	// Resync is how often everything that is stored is looked at again; 0 is never.
	Resync time.Duration
	// Controllers are those to run.
	Controllers []string
	// Namespaces is how many Namespaces are worked on at once.
	Namespaces int
	// Settings are what controllers are told.
	Settings programs.Settings
	// SkippedAPIs and SkippedNamespaces are never propagated.
	SkippedAPIs       string
	SkippedNamespaces []string

	later later
	flags *pflag.FlagSet
}

// Default are the options without flags.
func Default(set *gates.Set) *Options {
	settings := programs.DefaultSettings(set)
	return &Options{
		Connection: flags.DefaultConnection(), Election: flags.DefaultElection(programs.ControllerManager),
		Serving: flags.DefaultServing(":10357"), Backoff: flags.DefaultBackoff(), Members: flags.DefaultRate(),
		Controllers: settings.Controllers.Selected, Namespaces: 1, Settings: settings,
		SkippedNamespaces: []string{"kube-.*"}, later: defaultLater(),
	}
}

// Run implements command.Options.
func (o *Options) Run(ctx context.Context) error {
	o.TellIneffective(ctx)
	karmada, err := o.Connection.Config(programs.ControllerManager)
	if err != nil {
		return err
	}
	host, err := o.Host()
	if err != nil {
		return err
	}
	return programs.Run(ctx, karmada, host, programs.ControllerManager)
}

// TellIneffective says once in the log which flags were given for nothing.
func (o *Options) TellIneffective(ctx context.Context) {
	flags.TellIneffective(ctx, programs.ControllerManager, o.ineffective())
}

// Host is what the options mean for the process.
func (o *Options) Host() (programs.HostOptions, error) {
	settings := o.Settings
	of := &settings.Controllers
	skipped, err := reach.ParseSkippedAPIs(o.SkippedAPIs)
	if err != nil {
		return programs.HostOptions{}, err
	}
	of.Selected, of.SkippedAPIs = o.Controllers, skipped
	of.Workers.Pairs = o.Namespaces * programs.DefaultSettings(settings.Gates).Controllers.Workers.Pairs
	of.Backoff, of.MemberBackoff = o.Backoff.Of(of.Backoff, o.flags), o.Backoff.Of(of.MemberBackoff, o.flags)
	of.RetryRate, of.RetryBurst = o.Backoff.QPS, o.Backoff.BucketSize
	host := programs.HostOptions{
		Election: o.Election, Serving: o.Serving, Resync: o.Resync,
		SkippedNamespaces: o.SkippedNamespaces, Settings: &settings,
	}
	if qps, burst := o.Members.Limit(); qps > 0 {
		host.Members = member.Throttle{QPS: qps, Burst: burst}
	}
	return host, nil
}

// ineffective are the flags that were given for nothing.
func (o *Options) ineffective() []string {
	given := flags.Given(o.flags, o.later.added...)
	for _, controller := range programs.AbsentControllers(o.Controllers) {
		given = append(given, "--controllers="+controller)
	}
	if o.Settings.Gates.Enabled(gates.ControllerPriorityQueue) {
		given = append(given, flags.Given(o.flags, flags.BackoffQPS, flags.BackoffBucketSize)...)
	}
	if !o.Settings.Gates.Enabled(gates.Failover) {
		given = append(given, flags.Given(o.flags, "enable-no-execute-taint-eviction", "no-execute-taint-eviction-purge-mode", "resource-eviction-rate")...)
	}
	return append(given, flags.GivenGates(o.Settings.Gates, gatesOfLater...)...)
}

// gatesOfLater are gates of the controller manager whose controllers this version
// does not have.
var gatesOfLater = []featuregate.Feature{
	gates.MultiClusterService, gates.FederatedQuotaEnforcement,
}
