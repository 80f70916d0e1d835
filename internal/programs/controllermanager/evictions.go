package controllermanager

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/controllers/applicationfailover"
	"karmada.io/karmada/internal/controllers/gracefuleviction"
	"karmada.io/karmada/internal/controllers/tainteviction"
	"karmada.io/karmada/internal/controllers/workloadrebalancer"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// Evictions are the options for the eviction of workloads from clusters.
type Evictions struct {
	// TaintManager, NoExecute and the feature gate Failover must all be enabled so that NoExecute
	// taints evict workloads.
	TaintManager, NoExecute bool
	// Rate is the maximum number of taint evictions per second. 0 means that taints evict nothing.
	Rate float32
	// PurgeMode is the purge mode of an eviction if its taint does not define one.
	PurgeMode policyv1alpha1.PurgeMode
	// Timeout is the time limit of a graceful eviction that does not define its own limit.
	Timeout time.Duration
}

// DefaultEvictions returns the options of a production control plane.
func DefaultEvictions() Evictions {
	byTaints, graceful := tainteviction.DefaultOptions(), gracefuleviction.DefaultOptions()
	return Evictions{TaintManager: true, Rate: float32(byTaints.EvictionsPerSecond), PurgeMode: byTaints.PurgeMode, Timeout: graceful.Timeout}
}

// AddFlags implements programs.Options.
func (e *Evictions) AddFlags(set *pflag.FlagSet) {
	set.BoolVar(&e.TaintManager, "enable-taint-manager", e.TaintManager,
		"Whether NoExecute taints evict workloads from clusters. Requires the feature gate Failover and --enable-no-execute-taint-eviction.")
	set.BoolVar(&e.NoExecute, "enable-no-execute-taint-eviction", e.NoExecute,
		"Whether NoExecute taints evict workloads. Requires the feature gate Failover.")
	set.StringVar((*string)(&e.PurgeMode), "no-execute-taint-eviction-purge-mode", string(e.PurgeMode),
		"Purge mode of evictions by NoExecute taints if the policy does not set a purge mode. Directly deletes a workload before its replacement starts. Gracefully deletes it when the replacement is healthy.")
	set.Float32Var(&e.Rate, "resource-eviction-rate", e.Rate,
		"Maximum number of evictions by taints per second, in all clusters together. 0 stops these evictions.")
	set.DurationVar(&e.Timeout, "graceful-eviction-timeout", e.Timeout,
		"How long a graceful eviction waits for a healthy replacement. After this time, the eviction ends if at least one other copy is healthy. Otherwise the old copy is kept.")
}

// Validate implements programs.Options.
func (e *Evictions) Validate() error {
	errs := []error{flags.ValidateNotNegative("graceful-eviction-timeout", e.Timeout)}
	switch e.PurgeMode {
	case policyv1alpha1.PurgeModeDirectly, policyv1alpha1.PurgeModeGracefully:
	default:
		errs = append(errs, fmt.Errorf("--no-execute-taint-eviction-purge-mode %q: must be Directly or Gracefully", e.PurgeMode))
	}
	if rate := float64(e.Rate); rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
		errs = append(errs, fmt.Errorf("--resource-eviction-rate %v: must be a number that is not negative", e.Rate))
	}
	return errors.Join(errs...)
}

// missingFlags returns the flags that are needed so that NoExecute taints evict workloads.
func (e *Evictions) missingFlags(failoverEnabled bool) []string {
	var missing []string
	for _, needed := range []struct {
		isSet bool
		flag  string
	}{
		{failoverEnabled, failover.FlagFailover},
		{e.NoExecute, failover.FlagNoExecute},
		{e.TaintManager, "--enable-taint-manager=true"},
		{e.Rate > 0, fmt.Sprintf("--resource-eviction-rate=%v", DefaultEvictions().Rate)},
	} {
		if !needed.isSet {
			missing = append(missing, needed.flag)
		}
	}
	return missing
}

func (o *Options) addTaintEviction(h *programs.Host) error {
	own := tainteviction.DefaultOptions()
	own.MissingFlags = o.Evictions.missingFlags(h.Gates.Enabled(gates.Failover))
	own.EvictionsPerSecond, own.PurgeMode = float64(o.Evictions.Rate), o.Evictions.PurgeMode
	own.PreserveState, own.Backoff = h.Gates.Enabled(gates.StatefulFailoverInjection), o.QueueBackoff()
	return tainteviction.Add(h.Manager, own)
}

func (o *Options) addGracefulEviction(h *programs.Host) error {
	own := gracefuleviction.DefaultOptions()
	own.Workers, own.ClusterWorkers = o.Workers.Bindings, o.Workers.ClusterBindings
	own.Timeout, own.Backoff = o.Evictions.Timeout, o.QueueBackoff()
	return gracefuleviction.Add(h.Manager, own)
}

func (o *Options) addApplicationFailover(h *programs.Host) error {
	own := applicationfailover.DefaultOptions()
	own.AllowGraceful = h.Gates.Enabled(gates.GracefulEviction)
	own.PreserveState, own.Backoff = h.Gates.Enabled(gates.StatefulFailoverInjection), o.QueueBackoff()
	return applicationfailover.Add(h.Manager, h.Interpreter, own)
}

func (o *Options) addWorkloadRebalancer(h *programs.Host) error {
	own := workloadrebalancer.DefaultOptions()
	own.Backoff = o.QueueBackoff()
	return workloadrebalancer.Add(h.Manager, own)
}
