package controllermanager

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/pflag"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/programs/flags"
)

func (o *Options) addEvictionFlags(set *pflag.FlagSet) {
	evictions := &o.Settings.Controllers.Evictions
	set.BoolVar(&evictions.TaintManager, "enable-taint-manager", evictions.TaintManager,
		"Evict workloads from tainted clusters. Requires the feature gate Failover and --enable-no-execute-taint-eviction.")
	set.BoolVar(&evictions.NoExecute, "enable-no-execute-taint-eviction", evictions.NoExecute,
		"Let NoExecute taints evict workloads. Requires the feature gate Failover.")
	set.StringVar((*string)(&evictions.PurgeMode), "no-execute-taint-eviction-purge-mode", string(evictions.PurgeMode),
		"Default purge mode of evictions by NoExecute taints, if the policy does not set one: Directly deletes a workload before its replacement starts, Gracefully deletes it when the replacement is healthy.")
	set.Float32Var(&evictions.Rate, "resource-eviction-rate", evictions.Rate, "Maximum taint evictions per second for all clusters together. 0 stops them.")
	set.DurationVar(&evictions.Timeout, "graceful-eviction-timeout", evictions.Timeout,
		"How long a graceful eviction waits until the replacement is healthy. After that, it ends if at least one other copy is healthy; otherwise the old copy is kept.")
}

func (o *Options) validateEvictions() error {
	evictions := &o.Settings.Controllers.Evictions
	errs := []error{flags.ValidateNotNegative("graceful-eviction-timeout", evictions.Timeout)}
	switch evictions.PurgeMode {
	case policyv1alpha1.PurgeModeDirectly, policyv1alpha1.PurgeModeGracefully:
	default:
		errs = append(errs, fmt.Errorf("--no-execute-taint-eviction-purge-mode %q: must be Directly or Gracefully", evictions.PurgeMode))
	}
	if rate := float64(evictions.Rate); rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
		errs = append(errs, fmt.Errorf("--resource-eviction-rate %v: must be a number that is not negative", evictions.Rate))
	}
	return errors.Join(errs...)
}
