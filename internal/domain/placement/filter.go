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
	// reject returns why the cluster is no candidate; noReason if it may be one.
	reject func(*task, *clusterv1alpha1.Cluster) reason
	// gate reports whether the features include the filter; nil means always.
	gate func(Features) bool
}

// filters are asked in this order. Only the first that rejects a cluster is
// reported, so the order is part of what users read. The affinity comes first: what
// is wrong with a cluster that the user does not want is of no interest.
func filters() []filter {
	return []filter{
		{name: PluginClusterAffinity, reject: rejectAffinity},
		{name: PluginAPIEnablement, reject: rejectMissingAPI},
		{name: PluginTaintToleration, reject: rejectTaint},
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
// cluster is reported under the first reason for which it is rejected.
func (t *task) feasible() ([]*clusterv1alpha1.Cluster, error) {
	defer t.input.Observer.point(PointFilter)()
	t.rejected = nil
	left := t.withoutLeaving()
	for i := range t.filters {
		left = t.pass(&t.filters[i], left)
	}
	if len(left) > 0 {
		return left, nil
	}
	err := &FitError{Total: len(t.input.Clusters), Rejections: t.rejected}
	if len(t.input.Clusters) > 0 {
		err.Affinity = t.affinityName()
	}
	return nil, err
}

// withoutLeaving returns the clusters that are not being removed. One that is being
// removed is reported if the affinity selects it.
func (t *task) withoutLeaving() []*clusterv1alpha1.Cluster {
	staying := make([]*clusterv1alpha1.Cluster, 0, len(t.input.Clusters))
	leaving := map[reason][]string{}
	for _, cluster := range t.input.Clusters {
		switch {
		case cluster.DeletionTimestamp == nil:
			staying = append(staying, cluster)
		case t.selects(cluster):
			leaving[uniform("being removed")] = append(leaving[uniform("being removed")], cluster.Name)
		}
	}
	t.rejected = append(t.rejected, rejections(leaving)...)
	return staying
}

// pass keeps the clusters that a filter lets pass, and notes why it rejects the
// others. Clusters that the affinity does not select do not interest the user.
func (t *task) pass(by *filter, clusters []*clusterv1alpha1.Cluster) []*clusterv1alpha1.Cluster {
	defer t.input.Observer.plugin(PointFilter, by.name)()
	rejected := map[reason][]string{}
	passing := slices.DeleteFunc(clusters, func(cluster *clusterv1alpha1.Cluster) bool {
		why := by.reject(t, cluster)
		if why == noReason {
			return false
		}
		if by.name != PluginClusterAffinity {
			rejected[why] = append(rejected[why], cluster.Name)
		}
		return true
	})
	t.rejected = append(t.rejected, rejections(rejected)...)
	return passing
}

// rejectMissingAPI wants the cluster to serve the kind of the template. An
// incomplete list counts as not serving it, but moves nothing that is there.
func rejectMissingAPI(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if t.targets(cluster.Name) || serves(cluster, &t.spec.Resource) {
		return noReason
	}
	api := t.spec.Resource.APIVersion + " " + t.spec.Resource.Kind
	return reason{one: "does not serve " + api, many: "do not serve " + api}
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
func rejectTaint(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if len(cluster.Spec.Taints) == 0 || t.targets(cluster.Name) {
		return noReason
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
	return noReason
}

func untolerated(taint *corev1.Taint) reason {
	return uniform(fmt.Sprintf("untolerated taint {%s=%s:%s}", taint.Key, taint.Value, taint.Effect))
}

func keepsOut(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

func rejectAffinity(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if matchesAny(t.affinities, cluster) {
		return noReason
	}
	return uniform("not selected by the cluster affinity")
}

func matchesAny(matchers []Matcher, cluster *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(matchers, func(matcher Matcher) bool { return matcher.Matches(cluster) })
}

// selects reports whether the affinity that is being tried selects the cluster.
func (t *task) selects(cluster *clusterv1alpha1.Cluster) bool {
	return !t.input.Plugins.Enabled(PluginClusterAffinity) || matchesAny(t.affinities, cluster)
}

// rejectUnspreadable wants a cluster to have every property over which the
// template is to be spread.
func rejectUnspreadable(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if field := Unspreadable(t.spec.Placement, cluster); field != "" {
		return uniform("no " + field + " to spread by")
	}
	return noReason
}

// Unspreadable returns the field of the Cluster that is empty although the placement
// spreads over it; empty if there is none.
func Unspreadable(placement *policyv1alpha1.Placement, cluster *clusterv1alpha1.Cluster) string {
	switch {
	case cluster.Spec.Provider == "" && constraint(placement, policyv1alpha1.SpreadByFieldProvider) != nil:
		return "spec.provider"
	case cluster.Spec.Region == "" && constraint(placement, policyv1alpha1.SpreadByFieldRegion) != nil:
		return "spec.region"
	case len(cluster.Spec.Zones) == 0 && constraint(placement, policyv1alpha1.SpreadByFieldZone) != nil:
		return "spec.zones"
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

func rejectEvicting(t *task, cluster *clusterv1alpha1.Cluster) reason {
	for i := range t.spec.GracefulEvictionTasks {
		if t.spec.GracefulEvictionTasks[i].FromCluster == cluster.Name {
			return uniform("eviction in progress")
		}
	}
	if t.input.Avoid.Has(cluster.Name) && !t.targets(cluster.Name) {
		return uniform("the workload failed there a short while ago")
	}
	return noReason
}
