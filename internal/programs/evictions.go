package programs

import (
	"time"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/controllers/applicationfailover"
	"karmada.io/karmada/internal/controllers/gracefuleviction"
	"karmada.io/karmada/internal/controllers/tainteviction"
	"karmada.io/karmada/internal/programs/gates"
)

// Evictions are the settings for workloads that are evicted from clusters.
type Evictions struct {
	// TaintManager, NoExecute and the feature gate Failover must all be on for NoExecute taints
	// to evict workloads.
	TaintManager, NoExecute bool
	// Rate is the maximum of taint evictions per second. 0 stops them.
	Rate float32
	// PurgeMode is the purge mode of evictions for taints that do not define one.
	PurgeMode policyv1alpha1.PurgeMode
	// Timeout limits graceful evictions that do not define their own limit.
	Timeout time.Duration
}

func defaultEvictions() Evictions {
	byTaints, graceful := tainteviction.DefaultOptions(), gracefuleviction.DefaultOptions()
	return Evictions{TaintManager: true, Rate: float32(byTaints.EvictionsPerSecond), PurgeMode: byTaints.PurgeMode, Timeout: graceful.Timeout}
}

func addTaintEviction(h *Host) error {
	settings, o := h.Settings.Controllers, tainteviction.DefaultOptions()
	o.Enabled = settings.Evictions.TaintManager && settings.Evictions.NoExecute && h.Settings.Gates.Enabled(gates.Failover)
	o.EvictionsPerSecond, o.PurgeMode = float64(settings.Evictions.Rate), settings.Evictions.PurgeMode
	o.PreserveState = h.Settings.Gates.Enabled(gates.StatefulFailoverInjection)
	o.Backoff = settings.Backoff
	return tainteviction.Add(h.Manager, o)
}

func addGracefulEviction(h *Host) error {
	settings, o := h.Settings.Controllers, gracefuleviction.DefaultOptions()
	o.Workers, o.ClusterWorkers, o.Timeout = settings.Workers.Bindings, settings.Workers.ClusterBindings, settings.Evictions.Timeout
	o.Backoff = settings.Backoff
	return gracefuleviction.Add(h.Manager, h.Renderings, o)
}

func addApplicationFailover(h *Host) error {
	settings, o := h.Settings.Controllers, applicationfailover.DefaultOptions()
	o.AllowGraceful = h.Settings.Gates.Enabled(gates.GracefulEviction)
	o.PreserveState = h.Settings.Gates.Enabled(gates.StatefulFailoverInjection)
	o.Backoff = settings.Backoff
	return applicationfailover.Add(h.Manager, h.Interpreter, o)
}
