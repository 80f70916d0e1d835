package diagnose

import (
	"cmp"
	"fmt"
	"slices"
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
)

// LeftOutCluster is a cluster that the binding does not use.
type LeftOutCluster struct {
	Cluster string `json:"cluster"`
	// Filter is the name of the filter that rejects the cluster, or the step of the scheduling that
	// leaves it out. It is empty for a cluster that is being removed, and for a cluster that would
	// be chosen now.
	Filter string `json:"filter,omitempty"`
	// Message is the reason with numbers, without the name of the cluster.
	Message string `json:"message"`
}

// LeftOutInput holds the arguments of LeftOut.
type LeftOutInput struct {
	Binding  binding.Object
	Clusters []*clusterv1alpha1.Cluster
	// Limits are the results of the estimators by the name of the cluster. A cluster without an
	// entry is estimated by the resources in its status.
	Limits   map[string]capacity.Limit
	Features placement.Features
	Plugins  placement.Plugins
	// Now is the time at which tolerations are evaluated.
	Now time.Time
}

// LeftOut returns the clusters that are not targets of the binding, sorted by name, each with the
// filter that rejects it now. Clusters change, so the scheduler may have seen another state when it
// chose the targets. A binding without a placement leaves out no cluster.
func LeftOut(in LeftOutInput) []LeftOutCluster {
	spec := in.Binding.BindingSpec()
	if spec.Placement == nil {
		return nil
	}
	targets, excluded := sets.New[string](), map[string]placement.Exclusion{}
	for i := range spec.Clusters {
		targets.Insert(spec.Clusters[i].Name)
	}
	explanation := placement.Explain(in.placementInput())
	for _, exclusion := range explanation.Exclusions {
		excluded[exclusion.Cluster] = exclusion
	}
	lacksEstimates := explanation.Err == nil && in.failedForCapacity()
	var left []LeftOutCluster
	for _, each := range in.Clusters {
		if targets.Has(each.Name) {
			continue
		}
		exclusion, isExcluded := excluded[each.Name]
		switch {
		case lacksEstimates && (!isExcluded || exclusion.NeedsCapacity):
			left = append(left, in.describeLessRoom(each))
		case isExcluded:
			left = append(left, in.describe(each, exclusion))
		default:
			left = append(left, in.describeFitting(each))
		}
	}
	slices.SortFunc(left, func(a, b LeftOutCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return left
}

func (in *LeftOutInput) placementInput() placement.Input {
	input := placement.NewInput(in.Binding, in.Now)
	input.Clusters, input.EstimateReplicas = in.Clusters, in.estimate
	input.Features, input.Plugins = in.Features, in.Plugins
	return input
}

// estimate returns the capacity of each cluster according to its limit, or according to the
// resources in its status if there is no limit.
func (in *LeftOutInput) estimate(clusters []*clusterv1alpha1.Cluster) []int32 {
	demand := placement.DemandOf(in.Binding.BindingSpec(), in.Features)
	available := demand.Counter(false)
	counts := make([]int32, len(clusters))
	for i, each := range clusters {
		limit, estimated := in.Limits[each.Name]
		switch {
		case !estimated:
			counts[i] = available(each)
		case limit.IsKnown():
			counts[i] = limit.Count
		default:
			counts[i] = capacity.Unknown
		}
	}
	return counts
}

// failedForCapacity reports whether the scheduler found too little room for the latest version of the
// binding.
func (in *LeftOutInput) failedForCapacity() bool {
	scheduled := conditions.Get(in.Binding.BindingStatus().Conditions, workv1alpha2.Scheduled)
	return scheduled != nil && scheduled.Status == metav1.ConditionFalse && scheduled.Reason == workv1alpha2.BindingReasonUnschedulable && isCurrent(in.Binding, scheduled)
}

// describeLessRoom describes a cluster in which the scheduler found less room than there is according
// to its status. Only the scheduler calls accurate estimators, so their numbers are not known here.
func (in *LeftOutInput) describeLessRoom(of *clusterv1alpha1.Cluster) LeftOutCluster {
	room := in.estimate([]*clusterv1alpha1.Cluster{of})[0]
	return LeftOutCluster{Cluster: of.Name, Filter: string(placement.StepAssignReplicas), Message: fmt.Sprintf(
		"passes the filters and has room for %d by its status, but the scheduler found too little room, see schedule: "+
			"an estimator also considers the node selector, the tolerations and the free resources of single nodes", room)}
}

// describeFitting describes a cluster that would be chosen now.
func (in *LeftOutInput) describeFitting(of *clusterv1alpha1.Cluster) LeftOutCluster {
	left := LeftOutCluster{Cluster: of.Name, Message: "fits now; the scheduler uses it when it places the workload again"}
	if _, estimated := in.Limits[of.Name]; !estimated && placement.DividesByCapacity(in.Binding.BindingSpec().Placement.ReplicaScheduling) {
		left.Message = "fits now by its status; the scheduler uses it when it places the workload again, unless an estimator finds less room"
	}
	return left
}

func (in *LeftOutInput) describe(of *clusterv1alpha1.Cluster, exclusion placement.Exclusion) LeftOutCluster {
	left := LeftOutCluster{Cluster: of.Name, Filter: exclusion.Plugin, Message: exclusion.Reason}
	if left.Filter == "" && exclusion.Step != placement.StepFilter {
		left.Filter = string(exclusion.Step)
	}
	switch {
	case exclusion.Plugin == placement.PluginTaintToleration && !cluster.IsReady(of):
		left.Message += "; " + describeNotReady(of)
	case exclusion.NeedsCapacity:
		left.Message += in.describeCapacity(of)
	}
	return left
}

// describeCapacity returns the resource that limits the replicas in a cluster, or the estimator that
// does.
func (in *LeftOutInput) describeCapacity(of *clusterv1alpha1.Cluster) string {
	spec := in.Binding.BindingSpec()
	if limit, estimated := in.Limits[of.Name]; estimated {
		return "; estimated " + limit.String()
	}
	if placement.PlacesComponents(spec, in.Features) {
		return ""
	}
	scarce := capacity.BottleneckOf(of, spec.ReplicaRequirements)
	return fmt.Sprintf("; %s: wants %s x %d, room for %d", scarce.Resource, &scarce.Request, spec.Replicas, scarce.Replicas)
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

// expectedClusters returns the clusters in which the binding expects its template, sorted.
func expectedClusters(bound binding.Object) []string {
	return sets.List(binding.ExpectedClusters(bound.BindingSpec()))
}

// notReadySince returns the time since when a cluster is not ready, or the zero time.
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

// credentialsProblem returns why a cluster rejects the requests of the control plane, or an empty
// string.
func (f *Facts) credentialsProblem(name string) string {
	if of := f.cluster(name); of != nil {
		return cluster.CredentialsProblem(of.Status.Conditions)
	}
	return ""
}
