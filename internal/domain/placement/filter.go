package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/toleration"
)

// filter is a plugin that rejects clusters.
type filter struct {
	plugin
	// reject returns the reason why the cluster is rejected, or noReason if the cluster passes.
	reject func(*task, *clusterv1alpha1.Cluster) reason
}

// filters returns the filters in the order in which they run. The order matters to users, because only
// a cluster's first rejection is reported. The affinity filter runs first, because users are not
// interested in clusters that they did not select.
func filters() []filter {
	return []filter{
		{plugin{name: PluginClusterAffinity}, rejectAffinity},
		{plugin{name: PluginAPIEnablement}, rejectMissingAPI},
		{plugin{name: PluginTaintToleration}, rejectUntoleratedTaint},
		{plugin{name: PluginSpreadConstraint}, rejectMissingSpreadField},
		{plugin{name: PluginClusterEviction}, rejectEviction},
		{plugin{PluginWorkloadAffinity, isWorkloadAffinityEnabled}, rejectWorkloadAffinity},
		{plugin{PluginWorkloadAntiAffinity, isWorkloadAffinityEnabled}, rejectWorkloadAntiAffinity},
	}
}

func isWorkloadAffinityEnabled(features Features) bool { return features.WorkloadAffinity }

// feasibleClusters returns the clusters that pass all filters, in the order of the input, or a
// *FitError if no cluster does. Each filter runs only on the clusters that passed the previous ones.
func (t *task) feasibleClusters() ([]*clusterv1alpha1.Cluster, error) {
	defer t.input.Observer.startExtensionPoint(ExtensionPointFilter)()
	t.rejections, t.clustersWithoutAPI = nil, nil
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

// withoutTerminatingClusters returns the clusters that are not terminating, and records a rejection
// for each terminating cluster that the affinity selects.
func (t *task) withoutTerminatingClusters() []*clusterv1alpha1.Cluster {
	remaining := make([]*clusterv1alpha1.Cluster, 0, len(t.input.Clusters))
	var terminating rejectedClusters
	for _, cluster := range t.input.Clusters {
		switch {
		case cluster.DeletionTimestamp == nil:
			remaining = append(remaining, cluster)
		case t.affinitySelects(cluster):
			terminating.add(newReason("being removed"), cluster.Name)
			t.excludeByFilter(cluster.Name, "", newReason("being removed"))
		default:
			t.excludeByFilter(cluster.Name, PluginClusterAffinity, unselectedReason)
		}
	}
	t.rejections = append(t.rejections, groupRejections(terminating)...)
	return remaining
}

// applyFilter returns the clusters that pass the filter, and records a rejection for each of the
// others, unless the affinity does not select them.
func (t *task) applyFilter(filter *filter, clusters []*clusterv1alpha1.Cluster) []*clusterv1alpha1.Cluster {
	defer t.input.Observer.startPlugin(ExtensionPointFilter, filter.name)()
	var rejected rejectedClusters
	passing := slices.DeleteFunc(clusters, func(cluster *clusterv1alpha1.Cluster) bool {
		reason := filter.reject(t, cluster)
		if reason == noReason {
			return false
		}
		t.excludeByFilter(cluster.Name, filter.name, reason)
		if filter.name == PluginAPIEnablement {
			t.clustersWithoutAPI = append(t.clustersWithoutAPI, cluster)
		}
		if filter.name != PluginClusterAffinity {
			rejected.add(reason, cluster.Name)
		}
		return true
	})
	t.rejections = append(t.rejections, groupRejections(rejected)...)
	return passing
}

// rejectMissingAPI rejects clusters whose API list does not contain the template's kind, unless they
// are already targets. The list may be incomplete.
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

// rejectUntoleratedTaint rejects clusters with a taint that the template does not tolerate, unless they
// are already targets, from which other controllers evict the workload. An expired toleration counts
// as missing, because the workload would be evicted immediately.
func rejectUntoleratedTaint(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if len(cluster.Spec.Taints) == 0 || t.isTarget(cluster.Name) {
		return noReason
	}
	tolerations := t.spec.Placement.ClusterTolerations
	if taint := untoleratedTaint(cluster, tolerations); taint != nil {
		return untoleratedTaintReason(taint)
	}
	if deadline := toleration.EvictionDeadline(cluster.Spec.Taints, tolerations); deadline.IsOver(t.input.Now) {
		return untoleratedTaintReason(deadline.Taint)
	}
	return noReason
}

// untoleratedTaint returns the cluster's first taint that prevents scheduling and is not tolerated, or
// nil.
func untoleratedTaint(cluster *clusterv1alpha1.Cluster, tolerations []corev1.Toleration) *corev1.Taint {
	for i := range cluster.Spec.Taints {
		taint := &cluster.Spec.Taints[i]
		if preventsScheduling(taint) && toleration.FirstMatch(tolerations, taint) == nil {
			return taint
		}
	}
	return nil
}

func untoleratedTaintReason(taint *corev1.Taint) reason {
	return newReason("untolerated taint {" + taint.Key + "=" + taint.Value + ":" + string(taint.Effect) + "}")
}

func preventsScheduling(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// unselectedReason is the reason for rejecting clusters that the affinity does not select.
var unselectedReason = newReason("not selected by the cluster affinity")

func rejectAffinity(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if matchesAny(t.affinityMatchers, cluster) {
		return noReason
	}
	return unselectedReason
}

func matchesAny(matchers []clusteraffinity.Matcher, cluster *clusterv1alpha1.Cluster) bool {
	for i := range matchers {
		if matchers[i].Matches(cluster) {
			return true
		}
	}
	return false
}

// affinitySelects reports whether the affinity that is being tried selects the cluster.
func (t *task) affinitySelects(cluster *clusterv1alpha1.Cluster) bool {
	return !t.input.Plugins.Enabled(PluginClusterAffinity) || matchesAny(t.affinityMatchers, cluster)
}

// rejectMissingSpreadField rejects clusters that lack the value of a field by which the template is
// spread.
func rejectMissingSpreadField(t *task, cluster *clusterv1alpha1.Cluster) reason {
	if field := MissingSpreadField(t.spec.Placement, cluster); field != "" {
		return newReason("no " + field + " to spread by")
	}
	return noReason
}

// MissingSpreadField returns the first of the Cluster's fields by which the placement spreads and that
// is empty, or an empty string if there is none.
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

// rejectEviction rejects clusters from which the template is being evicted, and clusters to avoid that
// are not targets. An eviction that the scheduler itself started does not count, because the scheduler
// may select the cluster again.
func rejectEviction(t *task, cluster *clusterv1alpha1.Cluster) reason {
	for i := range t.spec.GracefulEvictionTasks {
		eviction := &t.spec.GracefulEvictionTasks[i]
		if eviction.FromCluster == cluster.Name && eviction.Producer != workv1alpha2.EvictionProducerScheduler {
			return newReason("eviction in progress")
		}
	}
	if t.input.AvoidClusters.Has(cluster.Name) && !t.isTarget(cluster.Name) {
		return newReason("the workload failed there a short while ago")
	}
	return noReason
}
