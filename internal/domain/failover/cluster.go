package failover

import (
	"cmp"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/toleration"
)

// HasEvictingTaint reports whether the cluster has a taint that can evict workloads.
func HasEvictingTaint(cluster *clusterv1alpha1.Cluster) bool {
	for i := range cluster.Spec.Taints {
		if cluster.Spec.Taints[i].Effect == corev1.TaintEffectNoExecute {
			return true
		}
	}
	return false
}

// EvictionDeadline returns how long the workload may stay in the cluster. It uses the tolerations with
// which the workload was scheduled. If the record of these tolerations is missing or invalid, it uses
// the tolerations in the spec. ok is false if the spec has no placement either, because the scheduler
// would then find no other cluster for the workload.
func EvictionDeadline(cluster *clusterv1alpha1.Cluster, bound binding.Object) (deadline toleration.Deadline, ok bool) {
	applied := &policyv1alpha1.Placement{}
	text := bound.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	if text == "" || json.Unmarshal([]byte(text), applied) != nil {
		applied = bound.BindingSpec().Placement
	}
	if applied == nil {
		return toleration.Deadline{}, false
	}
	return toleration.EvictionDeadline(cluster.Spec.Taints, applied.ClusterTolerations), true
}

// ClusterEviction returns the eviction from the cluster after the deadline of its taints. byDefault is
// the purge mode of workloads that do not set one. preserve reports whether to preserve the state that
// the workload requests. The returned error describes why the state cannot be read.
func ClusterEviction(bound binding.Object, cluster string, deadline toleration.Deadline, byDefault policyv1alpha1.PurgeMode,
	preserve bool) (Eviction, error) {
	spec := bound.BindingSpec()
	e := Eviction{
		From: cluster, PurgeMode: byDefault,
		Reason: workv1alpha2.EvictionReasonTaintUntolerated, Producer: workv1alpha2.EvictionProducerTaintManager,
	}
	if deadline.Taint != nil {
		e.Message = fmt.Sprintf("the taint %s is not tolerated", deadline.Taint.ToString())
		if !deadline.Until.IsZero() {
			e.Message += " any longer"
		}
	}
	if spec.Failover == nil || spec.Failover.Cluster == nil {
		return e, nil
	}
	behavior := spec.Failover.Cluster
	e.PurgeMode = cmp.Or(behavior.PurgeMode, policyv1alpha1.PurgeModeGracefully)
	if preserve {
		return e.withPreservedState(bound, behavior.StatePreservation)
	}
	return e, nil
}

// withPreservedState adds the state that is preserved for the next cluster to the eviction.
func (e Eviction) withPreservedState(bound binding.Object, preservation *policyv1alpha1.StatePreservation) (Eviction, error) {
	if preservation == nil || len(preservation.Rules) == 0 {
		return e, nil
	}
	state, err := CollectState(preservation.Rules, bound.BindingStatus().AggregatedStatus, e.From)
	if err != nil {
		return e, err
	}
	e.PreservedLabels, e.ClustersBefore = state, targetNames(bound.BindingSpec())
	return e, nil
}
