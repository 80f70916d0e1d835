package diagnose

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/toleration"
)

// diagnoseTaints explains for each chosen cluster with taints why the template is there or stays there.
// Taints do not affect a binding without a placement, which follows other bindings.
func (p *pipeline) diagnoseTaints() []Link {
	bound := p.Binding.Value
	if bound.BindingSpec().Placement == nil {
		return nil
	}
	var links []Link
	for _, target := range binding.TargetClusters(bound.BindingSpec()) {
		member := p.cluster(target.Name)
		if member == nil {
			continue
		}
		for i := range member.Spec.Taints {
			if member.Spec.Taints[i].Effect == corev1.TaintEffectNoSchedule {
				links = append(links, explainNoSchedule(bound, member, &member.Spec.Taints[i]))
			}
		}
		if failover.HasEvictingTaint(member) {
			links = append(links, p.explainNoExecute(bound, member))
		}
	}
	return links
}

// explainNoSchedule describes why the template is in a cluster with the NoSchedule taint.
func explainNoSchedule(bound binding.Object, member *clusterv1alpha1.Cluster, taint *corev1.Taint) Link {
	link := Link{Stage: StageSchedule, Cluster: member.Name, Result: OK, Reason: ReasonTaintTolerated}
	link.Message = fmt.Sprintf("has taint %s, which the placement tolerates", taint.ToString())
	if toleration.FirstMatch(bound.BindingSpec().Placement.ClusterTolerations, taint) == nil {
		link.Reason = ReasonPlacedBeforeTaint
		link.Message = fmt.Sprintf("has taint %s, which keeps only new objects away: the object is already there and keeps its replicas",
			taint.ToString())
	}
	if taint.Key == clusterv1alpha1.TaintClusterUnschedulable {
		link.Message = "is cordoned: " + link.Message
	}
	return link
}

// explainNoExecute describes whether the NoExecute taints of the member evict the template.
func (p *pipeline) explainNoExecute(bound binding.Object, member *clusterv1alpha1.Cluster) Link {
	link := Link{Stage: StageSchedule, Cluster: member.Name, Result: OK, Reason: ReasonTaintTolerated}
	deadline, _ := failover.EvictionDeadline(member, bound)
	evicting := conditions.Get(member.Status.Conditions, clusterv1alpha1.ClusterConditionTaintsEvict)
	switch {
	case deadline.Taint == nil:
		link.Message = "has NoExecute taints, which the placement tolerates"
	case !deadline.IsOver(p.Now):
		until := metav1.NewTime(deadline.Until)
		link.Message = fmt.Sprintf("has taint %s, which the placement tolerates until %s", deadline.Taint.ToString(), formatTime(&until))
	case evicting == nil:
		link.Result, link.Reason = Unknown, ReasonEvictionUnreported
		link.Message = fmt.Sprintf("has taint %s, which the placement does not tolerate, and no controller reports whether such taints evict workloads", deadline.Taint.ToString())
		link.Remedy = "check that karmada-controller-manager runs, and that its flag --controllers does not disable the controller cluster"
	case evicting.Status == metav1.ConditionFalse:
		link.Result, link.Reason, link.Remedy = Failed, evicting.Reason, failover.EvictionRemedy(evicting)
		link.Message = fmt.Sprintf("has taint %s, which the placement does not tolerate, but NoExecute taints evict no workloads in this control plane", deadline.Taint.ToString())
	default:
		link.Result, link.Reason = Pending, ReasonEvictionPending
		link.Message = fmt.Sprintf("has taint %s, which the placement does not tolerate: the object will be evicted", deadline.Taint.ToString())
	}
	return link
}
