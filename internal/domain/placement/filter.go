package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/toleration"
)

// filter is a reason for which a cluster may be no candidate.
type filter struct {
	name string
	// reject returns why the cluster is no candidate; empty if it may be one.
	reject func(*task, *clusterv1alpha1.Cluster) string
	// gate tells whether the features include the filter; nil means always.
	gate func(Features) bool
}

// filters are asked in this order. Only the first that rejects a cluster is
// reported, so the order is part of what users read.
func filters() []filter {
	return []filter{
		{name: PluginAPIEnablement, reject: rejectMissingAPI},
		{name: PluginTaintToleration, reject: rejectTaint},
		{name: PluginClusterAffinity, reject: rejectAffinity},
		{name: PluginSpreadConstraint, reject: rejectUnspreadable},
		{name: PluginClusterEviction, reject: rejectEvicting},
		{name: PluginWorkloadAffinity, reject: rejectStranger, gate: withWorkloadAffinity},
		{name: PluginWorkloadAntiAffinity, reject: rejectRival, gate: withWorkloadAffinity},
	}
}

func withWorkloadAffinity(features Features) bool { return features.WorkloadAffinity }

func (f filter) enabled(features Features, plugins Plugins) bool {
	return plugins.Enabled(f.name) && (f.gate == nil || f.gate(features))
}

// feasible returns the clusters that pass, in their order, or a FitError if none
// does. Filter after filter looks at the clusters that are left, so that each
// cluster is counted under the first reason for which it is rejected.
func (t *task) feasible() ([]*clusterv1alpha1.Cluster, error) {
	defer t.input.Observer.point(PointFilter)()
	left := make([]*clusterv1alpha1.Cluster, 0, len(t.input.Clusters))
	for _, cluster := range t.input.Clusters {
		if cluster.DeletionTimestamp == nil {
			left = append(left, cluster)
		}
	}
	reasons := map[string]int{}
	for i := range t.filters {
		left = t.pass(&t.filters[i], left, reasons)
	}
	if len(left) == 0 {
		return nil, &FitError{Total: len(t.input.Clusters), Reasons: reasons}
	}
	return left, nil
}

// pass keeps the clusters that a filter lets pass, and counts why it rejects the
// others.
func (t *task) pass(by *filter, clusters []*clusterv1alpha1.Cluster, reasons map[string]int) []*clusterv1alpha1.Cluster {
	defer t.input.Observer.plugin(PointFilter, by.name)()
	return slices.DeleteFunc(clusters, func(cluster *clusterv1alpha1.Cluster) bool {
		reason := by.reject(t, cluster)
		if reason == "" {
			return false
		}
		reasons[reason]++
		return true
	})
}

// rejectMissingAPI wants the cluster to serve the kind of the template. An
// incomplete list counts as not serving it, but moves nothing that is there.
func rejectMissingAPI(t *task, cluster *clusterv1alpha1.Cluster) string {
	if t.targets(cluster.Name) || serves(cluster, &t.spec.Resource) {
		return ""
	}
	return "cluster(s) did not have the API resource"
}

func serves(cluster *clusterv1alpha1.Cluster, template *workv1alpha2.ObjectReference) bool {
	for i := range cluster.Status.APIEnablements {
		group := &cluster.Status.APIEnablements[i]
		if group.GroupVersion != template.APIVersion {
			continue
		}
		for j := range group.Resources {
			if group.Resources[j].Kind == template.Kind {
				return true
			}
		}
	}
	return false
}

// rejectTaint keeps new work out of tainted clusters. Taking away what is there
// already is the business of others. What tolerates a taint for a time that is over
// would be taken away as soon as it came.
func rejectTaint(t *task, cluster *clusterv1alpha1.Cluster) string {
	if len(cluster.Spec.Taints) == 0 || t.targets(cluster.Name) {
		return ""
	}
	tolerations := t.spec.Placement.ClusterTolerations
	for i := range cluster.Spec.Taints {
		taint := &cluster.Spec.Taints[i]
		if keepsOut(taint) && toleration.First(tolerations, taint) == nil {
			return untolerated(taint)
		}
	}
	if stay := toleration.InFor(cluster.Spec.Taints, tolerations); stay.Over(t.input.Now) {
		return untolerated(stay.Taint)
	}
	return ""
}

func untolerated(taint *corev1.Taint) string {
	return fmt.Sprintf("cluster(s) had untolerated taint {%s=%s:%s}", taint.Key, taint.Value, taint.Effect)
}

func keepsOut(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

func rejectAffinity(t *task, cluster *clusterv1alpha1.Cluster) string {
	for _, matcher := range t.affinities {
		if matcher.Matches(cluster) {
			return ""
		}
	}
	return "cluster(s) did not match the placement cluster affinity constraint"
}

// rejectUnspreadable wants a cluster to have every property over which the
// template is to be spread.
func rejectUnspreadable(t *task, cluster *clusterv1alpha1.Cluster) string {
	switch {
	case t.provider != nil && cluster.Spec.Provider == "":
		return "cluster(s) did not have provider property"
	case t.region != nil && cluster.Spec.Region == "":
		return "cluster(s) did not have region property"
	case t.zone != nil && len(cluster.Spec.Zones) == 0:
		return "cluster(s) did not have zones property"
	default:
		return ""
	}
}

// constraint finds the constraint by that field, nil if there is none.
func constraint(placement *policyv1alpha1.Placement, field policyv1alpha1.SpreadFieldValue) *policyv1alpha1.SpreadConstraint {
	for i := range placement.SpreadConstraints {
		if placement.SpreadConstraints[i].SpreadByField == field {
			return &placement.SpreadConstraints[i]
		}
	}
	return nil
}

func rejectEvicting(t *task, cluster *clusterv1alpha1.Cluster) string {
	for i := range t.spec.GracefulEvictionTasks {
		if t.spec.GracefulEvictionTasks[i].FromCluster == cluster.Name {
			return "cluster(s) is in the process of eviction"
		}
	}
	if t.input.Avoid.Has(cluster.Name) && !t.targets(cluster.Name) {
		return "cluster(s) had the workload fail a short while ago"
	}
	return ""
}
