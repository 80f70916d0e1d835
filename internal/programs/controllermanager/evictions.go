package controllermanager

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/pflag"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/programs/flags"
)

func (o *Options) addEvictions(set *pflag.FlagSet) {
	of := &o.Settings.Controllers.Evictions
	set.BoolVar(&of.TaintManager, "enable-taint-manager", of.TaintManager,
		"Evict workloads by taints of clusters; needs the feature gate Failover and --enable-no-execute-taint-eviction.")
	set.BoolVar(&of.NoExecute, "enable-no-execute-taint-eviction", of.NoExecute,
		"Let taints of effect NoExecute evict workloads; needs the feature gate Failover.")
	set.StringVar((*string)(&of.PurgeMode), "no-execute-taint-eviction-purge-mode", string(of.PurgeMode),
		"How workloads whose policy does not say it leave a cluster that is tainted NoExecute: Directly, before they start elsewhere, or Gracefully, when they are healthy elsewhere.")
	set.Float32Var(&of.Rate, "resource-eviction-rate", of.Rate, "Evictions for taints per second, at most, of all clusters together. 0 is none.")
	set.DurationVar(&of.Timeout, "graceful-eviction-timeout", of.Timeout,
		"How long an evicted workload waits to be healthy elsewhere. After that, some healthy copies are enough; without any the old one is kept.")
}

func (o *Options) validateEvictions() error {
	of := &o.Settings.Controllers.Evictions
	errs := []error{flags.NotNegative("graceful-eviction-timeout", of.Timeout)}
	switch of.PurgeMode {
	case policyv1alpha1.PurgeModeDirectly, policyv1alpha1.PurgeModeGracefully:
	default:
		errs = append(errs, fmt.Errorf("--no-execute-taint-eviction-purge-mode %q: must be Directly or Gracefully", of.PurgeMode))
	}
	if rate := float64(of.Rate); rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
		errs = append(errs, fmt.Errorf("--resource-eviction-rate %v: must be a number that is not negative", of.Rate))
	}
	return errors.Join(errs...)
}
