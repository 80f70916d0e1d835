package programs

import (
	"time"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/controllers/applicationfailover"
	"karmada.io/karmada/internal/controllers/gracefuleviction"
	"karmada.io/karmada/internal/controllers/tainteviction"
	"karmada.io/karmada/internal/programs/gates"
)

// Evictions are what can be decided about workloads that leave clusters.
type Evictions struct {
	// TaintManager and NoExecute, both, and the gate Failover let taints of effect
	// NoExecute evict workloads.
	TaintManager, NoExecute bool
	// Rate is how many workloads are evicted for taints in a second, at most; 0 is
	// none.
	Rate float32
	// PurgeMode is how workloads are evicted for taints that do not say it themselves.
	PurgeMode policyv1alpha1.PurgeMode
	// Timeout is how long an eviction takes at most that does not say it itself.
	Timeout time.Duration
}

func defaultEvictions() Evictions {
	byTaints, graceful := tainteviction.DefaultOptions(), gracefuleviction.DefaultOptions()
	return Evictions{TaintManager: true, Rate: float32(byTaints.Rate), PurgeMode: byTaints.PurgeMode, Timeout: graceful.Timeout}
}

func addTaintEviction(h *Host) error {
	of, o := h.Settings.Controllers, tainteviction.DefaultOptions()
	o.Enabled = of.Evictions.TaintManager && of.Evictions.NoExecute && h.Settings.Gates.Enabled(gates.Failover)
	o.Rate, o.PurgeMode = float64(of.Evictions.Rate), of.Evictions.PurgeMode
	o.PreserveState = h.Settings.Gates.Enabled(gates.StatefulFailoverInjection)
	o.Backoff = of.Backoff
	return tainteviction.Add(h.Manager, o)
}

func addGracefulEviction(h *Host) error {
	of, o := h.Settings.Controllers, gracefuleviction.DefaultOptions()
	o.Workers, o.ClusterWorkers, o.Timeout = of.Workers.Bindings, of.Workers.ClusterBindings, of.Evictions.Timeout
	o.Backoff = of.Backoff
	return gracefuleviction.Add(h.Manager, h.Renderings, o)
}

func addApplicationFailover(h *Host) error {
	of, o := h.Settings.Controllers, applicationfailover.DefaultOptions()
	o.Graceful = h.Settings.Gates.Enabled(gates.GracefulEviction)
	o.PreserveState = h.Settings.Gates.Enabled(gates.StatefulFailoverInjection)
	o.Backoff = of.Backoff
	return applicationfailover.Add(h.Manager, h.Rules, o)
}
