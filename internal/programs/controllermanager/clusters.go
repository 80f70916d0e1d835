package controllermanager

import (
	"errors"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/controllers/cluster"
	"karmada.io/karmada/internal/controllers/clustermonitor"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/clustertaintpolicy"
	"karmada.io/karmada/internal/controllers/remedy"
	"karmada.io/karmada/internal/controllers/unifiedauth"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
)

// Monitor contains the options of clustermonitor. Flags set them.
type Monitor clustermonitor.Options

// AddFlags implements programs.Options.
func (m *Monitor) AddFlags(set *pflag.FlagSet) {
	set.DurationVar(&m.Period, "cluster-monitor-period", m.Period, "Interval at which the heartbeats of pull mode clusters are checked.")
	set.DurationVar(&m.Grace.Period, "cluster-monitor-grace-period", m.Grace.Period,
		"How long the heartbeat of a pull mode cluster may be missing before its condition Ready becomes Unknown.")
	set.DurationVar(&m.Grace.Startup, "cluster-startup-grace-period", m.Grace.Startup,
		"Like --cluster-monitor-grace-period, but for a cluster that has never reported its status.")
}

// Validate implements programs.Options.
func (m *Monitor) Validate() error {
	return errors.Join(
		flags.ValidatePositive("cluster-monitor-period", m.Period),
		flags.ValidatePositive("cluster-monitor-grace-period", m.Grace.Period),
		flags.ValidatePositive("cluster-startup-grace-period", m.Grace.Startup),
	)
}

// ClusterStatus contains the options of clusterstatus. Flags set them.
type ClusterStatus clusterstatus.Options

// AddFlags implements programs.Options.
func (c *ClusterStatus) AddFlags(set *pflag.FlagSet) {
	set.DurationVar(&c.Period, "cluster-status-update-frequency", c.Period, "Interval at which the health of each cluster is checked.")
	set.DurationVar(&c.Thresholds.Failure, "cluster-failure-threshold", c.Thresholds.Failure,
		"How long health checks must fail before the condition Ready of a cluster becomes False.")
	set.DurationVar(&c.Thresholds.Success, "cluster-success-threshold", c.Thresholds.Success,
		"How long health checks must succeed before the condition Ready of a cluster becomes True again.")
	set.DurationVar(&c.InventoryTimeout, "cluster-cache-sync-timeout", c.InventoryTimeout,
		"How long the caches of a cluster's nodes and Pods may take to sync before a failure is reported. 0 means no timeout.")
	set.BoolVar(&c.Inventory, "enable-cluster-resource-modeling", c.Inventory,
		"Watch the nodes and Pods of clusters to report their resources and resource models.")
}

// Validate implements programs.Options.
func (c *ClusterStatus) Validate() error {
	return programs.ValidateClusterStatus(clusterstatus.Options(*c))
}

func (o *Options) addCluster(h *programs.Host) error {
	own := cluster.DefaultOptions()
	own.Workers, own.OnDeleted, own.Backoff = o.Workers.Clusters, h.Members.CloseMember, o.QueueBackoff()
	return errors.Join(cluster.Add(h.Manager, own), clustermonitor.Add(h.Manager, clustermonitor.Options(o.Monitor)), o.addTaintEviction(h))
}

func (o *Options) addClusterStatus(h *programs.Host) error {
	return programs.AddClusterStatus(h, clusterstatus.Options(o.ClusterStatus))
}

func (o *Options) addUnifiedAuth(h *programs.Host) error {
	own := unifiedauth.DefaultOptions()
	own.Workers, own.Backoff = o.Workers.Clusters, o.QueueBackoff()
	return unifiedauth.Add(h.Manager, own)
}

func (o *Options) addClusterTaintPolicy(h *programs.Host) error {
	own := clustertaintpolicy.DefaultOptions()
	own.Workers, own.Backoff = o.Workers.Clusters, o.QueueBackoff()
	return clustertaintpolicy.Add(h.Manager, own)
}

func (o *Options) addRemedy(h *programs.Host) error {
	own := remedy.DefaultOptions()
	own.Workers, own.Backoff = o.Workers.Clusters, o.QueueBackoff()
	return remedy.Add(h.Manager, own)
}
