package programs

import (
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/controllers/binding"
	"karmada.io/karmada/internal/controllers/certrotation"
	"karmada.io/karmada/internal/controllers/clusterlease"
	"karmada.io/karmada/internal/controllers/clustermonitor"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/controllers/namespace"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/scheduler"
)

// Settings are what can be decided for the components of a process. A row of the
// tables of components and controllers takes from them the few values it needs.
type Settings struct {
	// Gates are the feature gates of the process.
	Gates *gates.Set
	// Mode is the sync mode whose clusters execution, workStatus and clusterStatus
	// serve.
	Mode clusterv1alpha1.ClusterSyncMode
	// Only is the name of the one cluster that they serve; empty is all of the mode.
	Only string
	// Controllers are for the controller manager and for agents.
	Controllers ControllerSettings
	// Agent is for agents.
	Agent AgentSettings
	// Scheduler is for the scheduler. What depends on gates is taken from Gates.
	Scheduler scheduler.Options
}

// AgentSettings are what can be decided for agents only.
type AgentSettings struct {
	// Lease tells the control plane that the agent lives.
	Lease clusterlease.Options
	// Rotation renews its certificate.
	Rotation certrotation.Options
}

// ControllerSettings are what can be decided for controllers.
type ControllerSettings struct {
	// Selected are the controllers to run, as the flag --controllers lists them; see
	// Selects.
	Selected []string
	// Workers are how many objects are worked on at once.
	Workers Workers
	// Backoff is that of an object that failed, MemberBackoff that of a Work whose
	// member cluster did not take it.
	Backoff, MemberBackoff queues.Backoff
	// RetryRate is how many failed objects of a queue are tried again in a second,
	// after RetryBurst that come at once. They count without the gate
	// ControllerPriorityQueue only.
	RetryRate, RetryBurst int
	// StatusPeriod is how often each member is looked at.
	StatusPeriod time.Duration
	// Thresholds are how long a change of a member's health must last.
	Thresholds cluster.Thresholds
	// Evictions are for workloads that leave clusters.
	Evictions Evictions
	// Monitor is how long clusters that report by themselves may be silent.
	Monitor clustermonitor.Options
	// MemberSettle is how long the first lists of a member's nodes and Pods may take;
	// 0 waits for ever.
	MemberSettle time.Duration
	// Inventory watches nodes and Pods of members to sum up their resources.
	Inventory bool
	// Events selects the successes of propagation that are written as events.
	Events observe.Mode
	// SkippedAPIs are the kinds whose objects are never propagated.
	SkippedAPIs reach.SkippedAPIs
}

// Workers are how many objects of each kind are worked on at once.
type Workers struct {
	Clusters, Templates, Dependents         int
	Policies, ClusterPolicies               int
	Bindings, ClusterBindings, Works, Pairs int
}

// DefaultSettings are those of a production control plane. The gates may still be
// set afterwards.
func DefaultSettings(set *gates.Set) Settings {
	templates, bindings, works := detector.DefaultOptions(), binding.DefaultOptions(), execution.DefaultOptions()
	status := clusterstatus.DefaultOptions()
	return Settings{
		Gates: set,
		Mode:  clusterv1alpha1.Push,
		Controllers: ControllerSettings{
			Selected: []string{"*"},
			Workers: Workers{
				Clusters: 5, Templates: templates.Workers, Dependents: 2,
				Policies: templates.PolicyWorkers, ClusterPolicies: templates.ClusterPolicyWorkers,
				Bindings: bindings.Workers, ClusterBindings: bindings.Workers, Works: works.Workers,
				Pairs: namespace.DefaultOptions().Workers,
			},
			Backoff: queues.DefaultBackoff(), MemberBackoff: works.Backoff,
			RetryRate: templates.RetryRate, RetryBurst: templates.RetryBurst,
			StatusPeriod: status.Period, Thresholds: status.Thresholds, Inventory: status.Inventory,
			Monitor: clustermonitor.DefaultOptions(), MemberSettle: status.Settle,
			SkippedAPIs: reach.DefaultSkippedAPIs(), Evictions: defaultEvictions(), Events: observe.Changes,
		},
		Agent:     AgentSettings{Lease: clusterlease.DefaultOptions(), Rotation: certrotation.DefaultOptions()},
		Scheduler: scheduler.DefaultOptions(),
	}
}
