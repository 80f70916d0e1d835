package programs

import (
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/telemetry"
	"karmada.io/karmada/internal/controllers/binding"
	"karmada.io/karmada/internal/controllers/certrotation"
	"karmada.io/karmada/internal/controllers/clusterlease"
	"karmada.io/karmada/internal/controllers/clustermonitor"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/controllers/namespace"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/scheduler"
)

// Settings are the settings of the components of a process. Each row of the tables of
// components and controllers takes only the values that it needs.
type Settings struct {
	// Gates are the feature gates of the process.
	Gates *gates.Set
	// SyncMode is the sync mode of the clusters that the controllers execution, workStatus and
	// clusterStatus serve.
	SyncMode clusterv1alpha1.ClusterSyncMode
	// OnlyCluster is the name of the only cluster that these controllers serve. If it is empty, they
	// serve all clusters of the mode.
	OnlyCluster string
	// Controllers are the settings of the controller manager and of agents.
	Controllers ControllerSettings
	// Agent are the settings of agents.
	Agent AgentSettings
	// Scheduler are the settings of the scheduler, except those that feature gates determine.
	Scheduler scheduler.Options
}

// AgentSettings are the settings that only agents have.
type AgentSettings struct {
	// Lease configures the heartbeat of the agent.
	Lease clusterlease.Options
	// Rotation configures the renewal of the certificate of the agent.
	Rotation certrotation.Options
}

// ControllerSettings are the settings of controllers.
type ControllerSettings struct {
	// Selected are the controllers to run, in the format of the flag --controllers; see
	// Selects.
	Selected []string
	// Workers are the numbers of parallel workers.
	Workers Workers
	// Backoff is the backoff of an object whose reconcile failed. MemberBackoff is the backoff
	// of a Work that could not be applied to its member.
	Backoff, MemberBackoff queues.Backoff
	// RetryRate is the maximum of retries per second of a queue, after a burst of RetryBurst.
	// Both apply only without the feature gate ControllerPriorityQueue.
	RetryRate, RetryBurst int
	// StatusPeriod is the period of the health probes of each member.
	StatusPeriod time.Duration
	// Thresholds are how long a member must be healthy or unhealthy before its condition
	// changes.
	Thresholds cluster.Thresholds
	// Evictions are the settings for workloads that are evicted from clusters.
	Evictions Evictions
	// Monitor is how long the heartbeat of a pull mode cluster may be missing.
	Monitor clustermonitor.Options
	// MemberCacheSyncTimeout limits the initial sync of the caches of the nodes and Pods of a member. 0
	// means no limit.
	MemberCacheSyncTimeout time.Duration
	// Inventory enables watching the nodes and Pods of members to sum up their resources.
	Inventory bool
	// Events selects which successful propagation steps are written as events.
	Events telemetry.Mode
	// SkippedAPIs are the kinds whose objects are never propagated.
	SkippedAPIs tenancy.SkippedAPIs
}

// Workers are the numbers of parallel workers for each kind of object. Pairs are pairs of a
// namespace and a cluster.
type Workers struct {
	Clusters, Templates, Dependents                         int
	Policies, ClusterPolicies                               int
	Bindings, ClusterBindings, Works, NamespaceClusterPairs int
}

// DefaultSettings returns the settings of a production control plane. The gates may still be
// set afterwards.
func DefaultSettings(set *gates.Set) Settings {
	templates, bindings, works := detector.DefaultOptions(), binding.DefaultOptions(), execution.DefaultOptions()
	status := clusterstatus.DefaultOptions()
	return Settings{
		Gates:    set,
		SyncMode: clusterv1alpha1.Push,
		Controllers: ControllerSettings{
			Selected: []string{"*"},
			Workers: Workers{
				Clusters: 5, Templates: templates.Workers, Dependents: 2,
				Policies: templates.PolicyWorkers, ClusterPolicies: templates.ClusterPolicyWorkers,
				Bindings: bindings.Workers, ClusterBindings: bindings.Workers, Works: works.Workers,
				NamespaceClusterPairs: namespace.DefaultOptions().Workers,
			},
			Backoff: queues.DefaultBackoff(), MemberBackoff: works.Backoff,
			RetryRate: templates.RetryRate, RetryBurst: templates.RetryBurst,
			StatusPeriod: status.Period, Thresholds: status.Thresholds, Inventory: status.Inventory,
			Monitor: clustermonitor.DefaultOptions(), MemberCacheSyncTimeout: status.InventoryTimeout,
			SkippedAPIs: tenancy.DefaultSkippedAPIs(), Evictions: defaultEvictions(), Events: telemetry.ModeChanges,
		},
		Agent:     AgentSettings{Lease: clusterlease.DefaultOptions(), Rotation: certrotation.DefaultOptions()},
		Scheduler: scheduler.DefaultOptions(),
	}
}
