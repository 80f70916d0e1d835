package controllermanager

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/flags"
)

// unimplementedFlags are the flags of controllers that this version does not implement. A
// controller that is added takes over its flags from here.
type unimplementedFlags struct {
	clusterAPIKubeconfig, clusterAPIContext string
	quotaSync                               time.Duration
	autoscaler                              autoscalerFlags

	// names are the names of the flags, for the log line about flags without effect.
	names []string
}

type autoscalerFlags struct {
	cpuInitialization, downscaleDelay, downscaleStabilization time.Duration
	initialReadiness, syncPeriod, upscaleDelay                time.Duration
	tolerance                                                 float64
}

func defaultUnimplementedFlags() unimplementedFlags {
	return unimplementedFlags{
		quotaSync: 5 * time.Minute,
		autoscaler: autoscalerFlags{
			cpuInitialization: 5 * time.Minute, downscaleDelay: 5 * time.Minute, downscaleStabilization: 5 * time.Minute,
			initialReadiness: 30 * time.Second, syncPeriod: 15 * time.Second, upscaleDelay: 3 * time.Minute, tolerance: 0.1,
		},
	}
}

func (f *unimplementedFlags) addFlags(set *pflag.FlagSet) {
	for _, d := range f.durations() {
		set.DurationVar(d.value, d.name, *d.value, d.help+noEffect)
		f.names = append(f.names, d.name)
	}
	set.StringVar(&f.clusterAPIKubeconfig, "cluster-api-kubeconfig", f.clusterAPIKubeconfig,
		"Kubeconfig file of the Cluster API management cluster whose clusters are joined."+noEffect)
	set.StringVar(&f.clusterAPIContext, "cluster-api-context", f.clusterAPIContext, "Context in that kubeconfig."+noEffect)
	set.Float64Var(&f.autoscaler.tolerance, "horizontal-pod-autoscaler-tolerance", f.autoscaler.tolerance,
		"Maximum relative deviation of a metric from its target that does not trigger scaling."+noEffect)
	f.names = append(f.names, "cluster-api-kubeconfig", "cluster-api-context", "horizontal-pod-autoscaler-tolerance")
}

const noEffect = " Has no effect in this version."

type durationFlag struct {
	name  string
	value *time.Duration
	help  string
	// zeroAllowed means that 0 is a valid value.
	zeroAllowed bool
}

func (f *unimplementedFlags) durations() []durationFlag {
	return []durationFlag{
		{"federated-resource-quota-sync-period", &f.quotaSync, "Period of the recomputation of quota usage.", true},
		{"horizontal-pod-autoscaler-cpu-initialization-period", &f.autoscaler.cpuInitialization, "How long after the start of a Pod its CPU usage may be ignored.", true},
		{"horizontal-pod-autoscaler-downscale-delay", &f.autoscaler.downscaleDelay, "Minimum time between two downscales.", true},
		{"horizontal-pod-autoscaler-downscale-stabilization", &f.autoscaler.downscaleStabilization, "How far to look back for earlier recommendations before scaling down.", true},
		{"horizontal-pod-autoscaler-initial-readiness-delay", &f.autoscaler.initialReadiness, "How long after the start of a Pod changes of its readiness count as its initial readiness.", true},
		{"horizontal-pod-autoscaler-sync-period", &f.autoscaler.syncPeriod, "How often replicas are computed.", true},
		{"horizontal-pod-autoscaler-upscale-delay", &f.autoscaler.upscaleDelay, "Minimum time between two upscales.", true},
	}
}

func (f *unimplementedFlags) validate() error {
	var errs []error
	for _, d := range f.durations() {
		if d.zeroAllowed {
			errs = append(errs, flags.ValidateNotNegative(d.name, *d.value))
			continue
		}
		errs = append(errs, flags.ValidatePositive(d.name, *d.value))
	}
	if f.autoscaler.tolerance < 0 {
		errs = append(errs, fmt.Errorf("--horizontal-pod-autoscaler-tolerance %v: must not be negative", f.autoscaler.tolerance))
	}
	return errors.Join(errs...)
}
