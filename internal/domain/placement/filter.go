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

// filter rejects clusters for one kind of reason.
type filter struct {
	name string
	// reject returns the reason why the cluster is rejected, or noReason if the cluster passes.
	reject func(*task, *clusterv1alpha1.Cluster) reason
	// featureGate reports whether the features enable the filter. Nil means that the filter is
	// always enabled.
	featureGate func(Features) bool
}

// filters returns the filters in the order in which they run. Only the first rejection of a
// cluster is reported, so users see the order. The affinity comes first, because users are not
// interested in clusters that they did not select.
func filters() []filter {
	return []filter{
		{name: PluginClusterAffinity, reject: rejectAffinity},
		{name: PluginAPIEnablement, reject: rejectMissingAPI},
		{name: PluginTaintToleration, reject: rejectUntoleratedTaint},
		{name: PluginSpreadConstraint, reject: rejectMissingSpreadField},
		{name: PluginClusterEviction, reject: rejectEviction},
		{name: PluginWorkloadAffinity, reject: rejectWorkloadAffinity, featureGate: isWorkloadAffinityEnabled},
		{name: PluginWorkloadAntiAffinity, reject: rejectWorkloadAntiAffinity, featureGate: isWorkloadAffinityEnabled},
	}
}

func isWorkloadAffinityEnabled(features Features) bool { return features.WorkloadAffinity }

func (f filter) isEnabled(features Features, plugins Plugins) bool {
	return plugins.Enabled(f.name) && (f.featureGate == nil || f.featureGate(features))
}

// feasibleClusters returns the clusters that pass all filters, in the order of the input. It
// returns a FitError if no cluster passes. Each filter sees only the clusters that passed the
// filters before it, so each cluster is reported under its first reason.
func (t *task) feasibleClusters() ([]*clusterv1alpha1.Cluster, error) {
	defer t.input.Observer.startExtensionPoint(ExtensionPointFilter)()
	t.rejections = nil
	remaining := t.withoutTerminatingClusters()
	for i := range t.filters {
		remaining = t.applyFilter(&t.filters[i], remaining)
	}
	if len(remaining) > 0 {
		return remaining, nil
	}
	err := &FitError{Total: len(t.input.Clusters), Rejections: t.rejections}
	if len(t.input.Clusters) > 0 {
		err.Affinity = t.describeAffinityInUse()
	}
	return nil, err
}

// withoutTerminatingClusters returns the clusters that are not terminating. It records a
// rejection for each terminating cluster that the affinity selects.
func (t *task) withoutTerminatingClusters() []*clusterv1alpha1.Cluster {
	remaining := make([]*clusterv1alpha1.Cluster, 0, len(t.input.Clusters))
	terminating := map[reason][]string{}
	for _, cluster := range t.input.Clusters {
		switch {
		case cluster.DeletionTimestamp == nil:
			remaining = append(remaining, cluster)
		case t.affinitySelects(cluster):
			terminating[newReason("being removed")] = append(terminating[newReason("being removed")], cluster.Name)
		}
	}
	t.rejections = append(t.rejections, groupRejections(terminating)...)
	return remaining
}

// applyFilter returns the clusters that pass the filter and records a rejection for each of the
// others. Clusters that the affinity does not select are not recorded.
func (t *task) applyFilter(filter *filter, clusters []*clusterv1alpha1.Cluster) []*clusterv1alpha1.Cluster {
	defer t.input.Observer.startPlugin(ExtensionPointFilter, filter.name)()
	rejected := map[reason][]string{}
	passing := slices.DeleteFunc(clusters, func(cluster *clusterv1alpha1.Cluster) bool {
		reason := filter.reject(t, cluster)
		if reason == noReason {
			return false
		}
		if filter.name != PluginClusterAffinity {
			rejected[reason] = append(rejected[reason], cluster.Name)
		}
		return true
	})
	t.rejections = append(t.rejections, groupRejections(rejected)...)
	return passing
}

// rejectMissingAPI requires the cluster to serve the kind of the template. An incomplete API
// list counts as not serving the kind, but does not move a template that is already in the
// cluster.
func rejectMissingAPI(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if t.isTarget(cluster.Name) || servesKind(cluster, &t.spec.Resource) {
		return noReason
	}
	api := t.spec.Resource.APIVersion + " " + t.spec.Resource.Kind
	return reason{singular: "does not serve " + api, plural: "do not serve " + api}
}

func servesKind(cluster *clusterv1alpha1.Cluster, template *workv1alpha2.ObjectReference) bool {
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

// rejectUntoleratedTaint keeps new workloads out of tainted clusters. Workloads that are already
// in the cluster are evicted by other controllers. A toleration whose time is over counts as
// missing: the workload would be evicted as soon as it arrived.
func rejectUntoleratedTaint(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if len(cluster.Spec.Taints) == 0 || t.isTarget(cluster.Name) {
		return noReason
	}
	tolerations := t.spec.Placement.ClusterTolerations
	for i := range cluster.Spec.Taints {
		taint := &cluster.Spec.Taints[i]
		if preventsScheduling(taint) && toleration.FirstMatch(tolerations, taint) == nil {
			return untoleratedTaintReason(taint)
		}
	}
	if deadline := toleration.EvictionDeadline(cluster.Spec.Taints, tolerations); deadline.IsOver(t.input.Now) {
		return untoleratedTaintReason(deadline.Taint)
	}
	return noReason
}

func untoleratedTaintReason(taint *corev1.Taint) reason {
	return newReason(fmt.Sprintf("untolerated taint {%s=%s:%s}", taint.Key, taint.Value, taint.Effect))
}

func preventsScheduling(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

func rejectAffinity(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if matchesAny(t.affinityMatchers, cluster) {
		return noReason
	}
	return newReason("not selected by the cluster affinity")
}

func matchesAny(matchers []Matcher, cluster *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(matchers, func(matcher Matcher) bool { return matcher.Matches(cluster) })
}

// affinitySelects reports whether the affinity that is being tried selects the cluster.
func (t *task) affinitySelects(cluster *clusterv1alpha1.Cluster) bool {
	return !t.input.Plugins.Enabled(PluginClusterAffinity) || matchesAny(t.affinityMatchers, cluster)
}

// rejectMissingSpreadField requires the cluster to have a value for every field over which the
// template is spread.
func rejectMissingSpreadField(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if field := MissingSpreadField(t.spec.Placement, cluster); field != "" {
		return newReason("no " + field + " to spread by")
	}
	return noReason
}

// MissingSpreadField returns the first field of the Cluster that is empty although the placement
// spreads over it. It returns an empty string if there is none.
func MissingSpreadField(placement *policyv1alpha1.Placement, cluster *clusterv1alpha1.Cluster) string {
	switch {
	case cluster.Spec.Provider == "" && spreadConstraint(placement, policyv1alpha1.SpreadByFieldProvider) != nil:
		return "spec.provider"
	case cluster.Spec.Region == "" && spreadConstraint(placement, policyv1alpha1.SpreadByFieldRegion) != nil:
		return "spec.region"
	case len(cluster.Spec.Zones) == 0 && spreadConstraint(placement, policyv1alpha1.SpreadByFieldZone) != nil:
		return "spec.zones"
	default:
		return ""
	}
}

// spreadConstraint returns the spread constraint for the field, or nil if there is none.
func spreadConstraint(placement *policyv1alpha1.Placement, field policyv1alpha1.SpreadFieldValue) *policyv1alpha1.SpreadConstraint {
	for i := range placement.SpreadConstraints {
		if placement.SpreadConstraints[i].SpreadByField == field {
			return &placement.SpreadConstraints[i]
		}
	}
	return nil
}

func rejectEviction(t *task, cluster *clusterv1alpha1.Cluster) reason {
	for i := range t.spec.GracefulEvictionTasks {
		if t.spec.GracefulEvictionTasks[i].FromCluster == cluster.Name {
			return newReason("eviction in progress")
		}
	}
	if t.input.AvoidClusters.Has(cluster.Name) && !t.isTarget(cluster.Name) {
		return newReason("the workload failed there a short while ago")
	}
	return noReason
}
