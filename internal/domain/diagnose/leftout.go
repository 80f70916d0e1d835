package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/rebalance"
)

// LeftOutCluster is a cluster that the binding does not use.
type LeftOutCluster struct {
	Cluster string `json:"cluster"`
	// Filter is the name of the filter that rejects the cluster, or the scheduling step that leaves it
	// out. It is empty for a cluster that is being removed, and for a cluster that would be chosen now.
	Filter string `json:"filter,omitempty"`
	// Message is the reason with numbers, without the name of the cluster.
	Message string `json:"message"`
}

// leftOut returns the clusters that are not targets of the binding, sorted by name, each with the filter
// that rejects it now. The scheduler may have seen other clusters when it chose the targets. A binding
// without a placement leaves out no cluster.
func (p *pipeline) leftOut() []LeftOutCluster {
	spec := p.Binding.Value.BindingSpec()
	if spec.Placement == nil {
		return nil
	}
	targets, excluded := sets.New[string](), map[string]placement.Exclusion{}
	for i := range spec.Clusters {
		targets.Insert(spec.Clusters[i].Name)
	}
	input := placement.NewInput(p.Binding.Value, p.Now)
	input.Clusters, input.EstimateReplicas = p.Clusters.Value, p.estimateReplicas
	explanation := placement.Explain(input)
	for _, exclusion := range explanation.Exclusions {
		excluded[exclusion.Cluster] = exclusion
	}
	lacksEstimates := explanation.Err == nil && p.hasFailedForCapacity()
	var left []LeftOutCluster
	for _, each := range p.Clusters.Value {
		if targets.Has(each.Name) {
			continue
		}
		exclusion, isExcluded := excluded[each.Name]
		switch {
		case lacksEstimates && (!isExcluded || exclusion.NeedsCapacity):
			left = append(left, p.explainLessRoom(each))
		case isExcluded:
			left = append(left, p.explainExclusion(each, exclusion))
		default:
			left = append(left, p.explainFittingCluster(each))
		}
	}
	p.addRebalanceHints(left)
	slices.SortFunc(left, func(a, b LeftOutCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return left
}

// addRebalanceHints adds the command that rebalances the template to the messages of clusters that a fresh
// scheduling would choose. A binding that the scheduler has not placed yet needs no such command.
func (p *pipeline) addRebalanceHints(left []LeftOutCluster) {
	bound := p.Binding.Value
	if len(left) == 0 || !binding.IsScheduled(bound) || !placement.IsSchedulable(bound, bound.BindingSpec()) {
		return
	}
	chosen := sets.New[string]()
	for _, target := range rebalance.Preview(bound, p.Clusters.Value, p.Now).Result.Clusters {
		chosen.Insert(target.Name)
	}
	for i := range left {
		if chosen.Has(left[i].Cluster) {
			left[i].Message += "; to place the workload again now: " + p.rebalanceCommand()
		}
	}
}

// rebalanceCommand returns the command that rebalances the template.
func (f *Facts) rebalanceCommand() string {
	kind := strings.ToLower(f.Kind.Kind)
	if f.Kind.Group != "" {
		kind += "." + f.Kind.Group
	}
	return "karmadactl rebalance " + kind + "/" + f.Key.Name + namespaceFlag(f.Key.Namespace)
}

// estimateReplicas returns the capacity of each cluster according to the resources in its status.
func (p *pipeline) estimateReplicas(clusters []*clusterv1alpha1.Cluster) []int32 {
	demand := placement.DemandOf(p.Binding.Value.BindingSpec(), placement.Features{})
	available, counts := demand.Counter(false), make([]int32, len(clusters))
	for i, each := range clusters {
		counts[i] = available(each)
	}
	return counts
}

// hasFailedForCapacity reports whether the scheduler found too little room for the latest generation of the
// binding.
func (p *pipeline) hasFailedForCapacity() bool {
	scheduled := conditions.Get(p.Binding.Value.BindingStatus().Conditions, workv1alpha2.Scheduled)
	return scheduled != nil && scheduled.Status == metav1.ConditionFalse && scheduled.Reason == workv1alpha2.BindingReasonUnschedulable &&
		isCurrent(p.Binding.Value, scheduled)
}

// explainLessRoom describes a cluster in which the scheduler found less room than the cluster's status shows.
// Only the scheduler calls accurate estimators, so their numbers are not known here.
func (p *pipeline) explainLessRoom(of *clusterv1alpha1.Cluster) LeftOutCluster {
	room := p.estimateReplicas([]*clusterv1alpha1.Cluster{of})[0]
	return LeftOutCluster{Cluster: of.Name, Filter: string(placement.StepAssignReplicas), Message: fmt.Sprintf(
		"passes the filters and has room for %d by its status, but the scheduler found too little room, see schedule: "+
			"an estimator also considers the node selector, the tolerations and the free resources of single nodes", room)}
}

// explainFittingCluster describes a cluster that would be chosen now.
func (p *pipeline) explainFittingCluster(of *clusterv1alpha1.Cluster) LeftOutCluster {
	left := LeftOutCluster{Cluster: of.Name, Message: "fits now; the scheduler uses it when it places the workload again"}
	if placement.DividesByCapacity(p.Binding.Value.BindingSpec().Placement.ReplicaScheduling) {
		left.Message = "fits now by its status; the scheduler uses it when it places the workload again, unless an estimator finds less room"
	}
	return left
}

// explainExclusion describes a cluster that a filter or a scheduling step excludes.
func (p *pipeline) explainExclusion(of *clusterv1alpha1.Cluster, exclusion placement.Exclusion) LeftOutCluster {
	left := LeftOutCluster{Cluster: of.Name, Filter: exclusion.Plugin, Message: exclusion.Reason}
	if left.Filter == "" && exclusion.Step != placement.StepFilter {
		left.Filter = string(exclusion.Step)
	}
	spec := p.Binding.Value.BindingSpec()
	switch {
	case exclusion.Plugin == placement.PluginTaintToleration && !cluster.IsReady(of):
		left.Message += "; " + describeNotReady(of)
	case exclusion.NeedsCapacity && !placement.PlacesComponents(spec, placement.Features{}):
		scarce := capacity.BottleneckOf(of, spec.ReplicaRequirements)
		left.Message += fmt.Sprintf("; %s: wants %s x %d, room for %d", scarce.Resource, &scarce.Request, spec.Replicas, scarce.Replicas)
	}
	return left
}

// describeNotReady describes since when and why a cluster is not ready.
func describeNotReady(of *clusterv1alpha1.Cluster) string {
	ready := conditions.Get(of.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil {
		return "cluster " + of.Name + " has not reported yet"
	}
	text := fmt.Sprintf("cluster %s is not ready since %s", of.Name, formatTime(&ready.LastTransitionTime))
	if ready.Message != "" {
		text += ": " + ready.Message
	}
	return text
}

// notReadySince returns the time since when the named cluster is not ready. It returns the zero time for
// a ready cluster and for an unknown cluster.
func (f *Facts) notReadySince(name string) time.Time {
	of := f.cluster(name)
	if of == nil || cluster.IsReady(of) {
		return time.Time{}
	}
	if ready := conditions.Get(of.Status.Conditions, clusterv1alpha1.ClusterConditionReady); ready != nil {
		return ready.LastTransitionTime.Time
	}
	return of.CreationTimestamp.Time
}

// credentialsProblem returns why the named cluster rejects the credentials of the control plane, or "".
func (f *Facts) credentialsProblem(name string) string {
	if of := f.cluster(name); of != nil {
		return cluster.CredentialsProblem(of.Status.Conditions)
	}
	return ""
}
