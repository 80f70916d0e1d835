package programs

import (
	"errors"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/controllers/workstatus"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// WorkOptions are the options of the controllers that apply Works and that report the status of the
// applied objects.
type WorkOptions struct {
	// Workers is the number of Works that are processed in parallel for each member.
	Workers int
	// Mode is the sync mode of the clusters that the controllers serve.
	Mode clusterv1alpha1.ClusterSyncMode
}

// AddExecution registers the controller that applies Works.
func (o *ControllerOptions) AddExecution(h *Host, works WorkOptions) error {
	options := execution.DefaultOptions()
	options.Workers, options.Mode, options.Backoff, options.Events = works.Workers, works.Mode, o.MemberBackoff(), o.Events
	options.Guard = h.Guard
	return execution.Add(h.Manager, h.Members, h.Interpreter, h.WorkReports, options)
}

// AddWorkStatus registers the controller that reports the status of objects in members.
func (o *ControllerOptions) AddWorkStatus(h *Host, works WorkOptions) error {
	options := workstatus.DefaultOptions()
	options.Workers, options.Mode, options.Backoff, options.Events = works.Workers, works.Mode, o.MemberBackoff(), o.Events
	options.StatusBytes = MaxStatusBytes(h.Gates)
	return workstatus.Add(h.Manager, h.Members, h.Interpreter, h.WorkReports, options)
}

// AddClusterStatus registers the controller that reports the status of clusters.
func AddClusterStatus(h *Host, o clusterstatus.Options) error {
	o.Models = h.Gates.Enabled(gates.CustomizedClusterResourceModeling)
	return clusterstatus.Add(h.Manager, h.Members, o)
}

// ValidateClusterStatus returns the errors in the flags of the controller that reports the status
// of clusters.
func ValidateClusterStatus(o clusterstatus.Options) error {
	return errors.Join(
		flags.ValidatePositive("cluster-status-update-frequency", o.Period),
		flags.ValidateNotNegative("cluster-failure-threshold", o.Thresholds.Failure),
		flags.ValidateNotNegative("cluster-success-threshold", o.Thresholds.Success),
		flags.ValidateNotNegative("cluster-cache-sync-timeout", o.InventoryTimeout),
	)
}

// MaxStatusBytes returns the maximum size, in bytes, of a status that is reported for an object.
func MaxStatusBytes(set *gates.Set) int {
	if set.Enabled(gates.LargeStatus) {
		return work.MaxAggregationBytes
	}
	return work.MaxStatusBytes
}
