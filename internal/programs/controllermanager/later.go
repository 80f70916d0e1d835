package controllermanager

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/flags"
)

// later are the flags of controllers that this version does not have. A controller
// that comes takes its own from here.
type later struct {
	clusterAPIKubeconfig, clusterAPIContext string
	quotaSync                               time.Duration
	autoscaler                              autoscaler

	// added are the flags, for those who tell that they have no effect.
	added []string
}

type autoscaler struct {
	cpuInitialization, downscaleDelay, downscaleStabilization time.Duration
	initialReadiness, syncPeriod, upscaleDelay                time.Duration
	tolerance                                                 float64
}

func defaultLater() later {
	return later{
		quotaSync: 5 * time.Minute,
		autoscaler: autoscaler{
			cpuInitialization: 5 * time.Minute, downscaleDelay: 5 * time.Minute, downscaleStabilization: 5 * time.Minute,
			initialReadiness: 30 * time.Second, syncPeriod: 15 * time.Second, upscaleDelay: 3 * time.Minute, tolerance: 0.1,
		},
	}
}

func (l *later) addFlags(set *pflag.FlagSet) {
	for _, f := range l.durations() {
		set.DurationVar(f.value, f.name, *f.value, f.help+withoutEffect)
		l.added = append(l.added, f.name)
	}
	set.StringVar(&l.clusterAPIKubeconfig, "cluster-api-kubeconfig", l.clusterAPIKubeconfig,
		"Kubeconfig file of the management cluster whose Cluster API clusters are joined."+withoutEffect)
	set.StringVar(&l.clusterAPIContext, "cluster-api-context", l.clusterAPIContext, "Context in that kubeconfig."+withoutEffect)
	set.Float64Var(&l.autoscaler.tolerance, "horizontal-pod-autoscaler-tolerance", l.autoscaler.tolerance,
		"Deviation of a metric from its target, as a ratio, that scales nothing."+withoutEffect)
	l.added = append(l.added, "cluster-api-kubeconfig", "cluster-api-context", "horizontal-pod-autoscaler-tolerance")
}

const withoutEffect = " Without effect in this version."

type duration struct {
	name  string
	value *time.Duration
	help  string
	// zero says that 0 is a value as well.
	zero bool
}

func (l *later) durations() []duration {
	return []duration{
		{"federated-resource-quota-sync-period", &l.quotaSync, "How often quotas are summed up anew.", true},
		{"horizontal-pod-autoscaler-cpu-initialization-period", &l.autoscaler.cpuInitialization, "How long the CPU of a Pod is not measured after its start.", true},
		{"horizontal-pod-autoscaler-downscale-delay", &l.autoscaler.downscaleDelay, "Pause after scaling down.", true},
		{"horizontal-pod-autoscaler-downscale-stabilization", &l.autoscaler.downscaleStabilization, "How far to look back before scaling down.", true},
		{"horizontal-pod-autoscaler-initial-readiness-delay", &l.autoscaler.initialReadiness, "How long after its start a Pod may become unready and ready again.", true},
		{"horizontal-pod-autoscaler-sync-period", &l.autoscaler.syncPeriod, "How often replicas are computed.", true},
		{"horizontal-pod-autoscaler-upscale-delay", &l.autoscaler.upscaleDelay, "Pause after scaling up.", true},
	}
}

func (l *later) validate() error {
	var errs []error
	for _, f := range l.durations() {
		if f.zero {
			errs = append(errs, flags.NotNegative(f.name, *f.value))
			continue
		}
		errs = append(errs, flags.Positive(f.name, *f.value))
	}
	if l.autoscaler.tolerance < 0 {
		errs = append(errs, fmt.Errorf("--horizontal-pod-autoscaler-tolerance %v: must not be negative", l.autoscaler.tolerance))
	}
	return errors.Join(errs...)
}
