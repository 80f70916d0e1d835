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

// Drives tells whether a cluster has taints that may drive work out of it.
func Drives(cluster *clusterv1alpha1.Cluster) bool {
	for i := range cluster.Spec.Taints {
		if cluster.Spec.Taints[i].Effect == corev1.TaintEffectNoExecute {
			return true
		}
	}
	return false
}

// StayIn is how long a workload may stay in a cluster, by the tolerations that it
// was scheduled with, or by those that it asks for when the record of the former
// cannot be read. ok is false when neither is there: nobody says where such a
// workload is to be, and nobody would find it another place.
func StayIn(cluster *clusterv1alpha1.Cluster, bound binding.Object) (stay toleration.Stay, ok bool) {
	applied := &policyv1alpha1.Placement{}
	text := bound.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	if text == "" || json.Unmarshal([]byte(text), applied) != nil {
		applied = bound.BindingSpec().Placement
	}
	if applied == nil {
		return toleration.Stay{}, false
	}
	return toleration.EvictionDeadline(cluster.Spec.Taints, applied.ClusterTolerations), true
}

// Cluster is the eviction from a cluster in which a stay has ended.
// byDefault is how workloads leave that do not say it themselves. With preserve the
// state that they ask for is taken along; the error tells why it cannot be read.
func Cluster(bound binding.Object, cluster string, stay toleration.Stay, byDefault policyv1alpha1.PurgeMode, preserve bool) (Eviction, error) {
	spec := bound.BindingSpec()
	e := Eviction{
		From: cluster, PurgeMode: byDefault,
		Reason: workv1alpha2.EvictionReasonTaintUntolerated, Producer: workv1alpha2.EvictionProducerTaintManager,
	}
	if stay.Taint != nil {
		e.Message = fmt.Sprintf("the taint %s is not tolerated", stay.Taint.ToString())
		if !stay.Until.IsZero() {
			e.Message += " any longer"
		}
	}
	if spec.Failover == nil || spec.Failover.Cluster == nil {
		return e, nil
	}
	behavior := spec.Failover.Cluster
	e.PurgeMode = cmp.Or(behavior.PurgeMode, policyv1alpha1.PurgeModeGracefully)
	if preserve {
		return e.keeping(bound, behavior.StatePreservation)
	}
	return e, nil
}

// keeping adds what is carried over to the next cluster.
func (e Eviction) keeping(bound binding.Object, preservation *policyv1alpha1.StatePreservation) (Eviction, error) {
	if preservation == nil || len(preservation.Rules) == 0 {
		return e, nil
	}
	state, err := Collect(preservation.Rules, bound.BindingStatus().AggregatedStatus, e.From)
	if err != nil {
		return e, err
	}
	e.State, e.Before = state, names(bound.BindingSpec())
	return e, nil
}
