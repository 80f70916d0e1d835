package programs

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// ignoredFlag is a flag that a program accepts for compatibility with existing command lines, but
// does not read.
type ignoredFlag struct {
	program, name string
	// value is the default of the flag, and determines the type of the flag. nil means that a group
	// of flags declares the flag, because other programs read it.
	value any
	help  string
}

const (
	noEffect       = " Has no effect in this version."
	noEffectAgents = " Has no effect: an agent serves one cluster."
)

// ignoredFlags is the table of all flags without effect. When a component starts to read one of
// these flags, the component declares the flag and the row is removed from this table.
var ignoredFlags = []ignoredFlag{
	{program: ControllerManager, name: "cluster-api-context", value: "", help: "Context in that kubeconfig." + noEffect},
	{program: ControllerManager, name: "cluster-api-kubeconfig", value: "", help: "Kubeconfig file of the Cluster API management cluster whose clusters are joined." + noEffect},
	{program: ControllerManager, name: "federated-resource-quota-sync-period", value: 5 * time.Minute, help: "Period of the recomputation of quota usage." + noEffect},
	{program: ControllerManager, name: "horizontal-pod-autoscaler-cpu-initialization-period", value: 5 * time.Minute, help: "How long after the start of a Pod its CPU usage may be ignored." + noEffect},
	{program: ControllerManager, name: "horizontal-pod-autoscaler-downscale-delay", value: 5 * time.Minute, help: "Minimum time between two downscales." + noEffect},
	{program: ControllerManager, name: "horizontal-pod-autoscaler-downscale-stabilization", value: 5 * time.Minute, help: "How far to look back for earlier recommendations before scaling down." + noEffect},
	{program: ControllerManager, name: "horizontal-pod-autoscaler-initial-readiness-delay", value: 30 * time.Second, help: "How long after the start of a Pod changes of its readiness count as its initial readiness." + noEffect},
	{program: ControllerManager, name: "horizontal-pod-autoscaler-sync-period", value: 15 * time.Second, help: "How often replicas are computed." + noEffect},
	{program: ControllerManager, name: "horizontal-pod-autoscaler-tolerance", value: 0.1, help: "Maximum relative deviation of a metric from its target that does not trigger scaling." + noEffect},
	{program: ControllerManager, name: "horizontal-pod-autoscaler-upscale-delay", value: 3 * time.Minute, help: "Minimum time between two upscales." + noEffect},

	{program: Scheduler, name: flags.BackoffBucketSize},
	{program: Scheduler, name: flags.BackoffQPS},

	{program: Agent, name: "concurrent-cluster-syncs", value: 5, help: "Number of clusters that are reconciled in parallel." + noEffectAgents},
	{program: Agent, name: flags.BackoffBucketSize},
	{program: Agent, name: flags.BackoffQPS},
}

// ignoredGates are the feature gates that a program accepts, but does not read.
var ignoredGates = map[string][]featuregate.Feature{
	ControllerManager: {gates.MultiClusterService, gates.FederatedQuotaEnforcement},
	Agent:             {gates.MultiClusterService},
}

// IgnoredFlags are the flags and feature gates that one program accepts for compatibility with
// existing command lines, but does not read.
type IgnoredFlags struct {
	program string
	flags   *pflag.FlagSet
}

// NewIgnoredFlags returns the flags that a program ignores.
func NewIgnoredFlags(program string) *IgnoredFlags { return &IgnoredFlags{program: program} }

// AddFlags implements Options.
func (i *IgnoredFlags) AddFlags(set *pflag.FlagSet) {
	i.flags = set
	for _, flag := range i.rows() {
		switch value := flag.value.(type) {
		case bool:
			set.Bool(flag.name, value, flag.help)
		case int:
			set.Int(flag.name, value, flag.help)
		case float64:
			set.Float64(flag.name, value, flag.help)
		case string:
			set.String(flag.name, value, flag.help)
		case time.Duration:
			set.Duration(flag.name, value, flag.help)
		}
		flags.MarkWithoutEffect(set, flag.name)
	}
}

// Validate implements Options.
func (i *IgnoredFlags) Validate() error {
	if i.flags == nil {
		return nil
	}
	var errs []error
	for _, flag := range i.rows() {
		errs = append(errs, flag.validate(i.flags))
	}
	return errors.Join(errs...)
}

func (i *ignoredFlag) validate(set *pflag.FlagSet) error {
	switch i.value.(type) {
	case float64:
		if value, err := set.GetFloat64(i.name); err != nil || value < 0 {
			return errors.Join(err, fmt.Errorf("--%s %v: must not be negative", i.name, value))
		}
	case time.Duration:
		value, err := set.GetDuration(i.name)
		return errors.Join(err, flags.ValidateNotNegative(i.name, value))
	}
	return nil
}

// Given returns the ignored flags and feature gates that the user set.
func (i *IgnoredFlags) Given(set *gates.Set) []string {
	return append(flags.GivenWithoutEffect(i.flags), flags.GivenGates(set, ignoredGates[i.program]...)...)
}

func (i *IgnoredFlags) rows() []ignoredFlag {
	var rows []ignoredFlag
	for _, flag := range ignoredFlags {
		if flag.program == i.program {
			rows = append(rows, flag)
		}
	}
	return rows
}
