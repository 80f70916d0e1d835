package placement

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// ClustersWithoutAPI returns the clusters in the workv1alpha2.ClustersWithoutAPIAnnotation of a
// binding. An annotation that is not valid JSON counts as empty, because workloads must not move
// because of it.
func ClustersWithoutAPI(meta metav1.Object) []string {
	text := meta.GetAnnotations()[workv1alpha2.ClustersWithoutAPIAnnotation]
	if text == "" {
		return nil
	}
	var names []string
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		return nil
	}
	return names
}

// RecordClustersWithoutAPI sets the annotation that ClustersWithoutAPI reads, or removes it if there
// are no names.
func RecordClustersWithoutAPI(meta metav1.Object, names []string) {
	binding.SetJSONAnnotation(meta, workv1alpha2.ClustersWithoutAPIAnnotation, names, len(names) == 0)
}

// canTakeShare reports whether a cluster that did not serve the kind of the template can get its
// share of the replicas now. A nil cluster cannot.
func canTakeShare(
	cluster *clusterv1alpha1.Cluster,
	meta metav1.Object,
	spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus,
) bool {
	if cluster == nil || cluster.DeletionTimestamp != nil || !servesKind(cluster, &spec.Resource) {
		return false
	}
	isTarget := slices.ContainsFunc(spec.Clusters, func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster.Name })
	return !isTarget && untoleratedTaint(cluster, spec.Placement.ClusterTolerations) == nil && IsAffectedByCluster(cluster, meta, spec, status)
}

// namesOfWeighted returns the sorted names of those of the clusters that would get a share of the
// replicas by static or equal weight beside the candidates. It returns nil if the replicas are not
// divided by such weights.
func (t *task) namesOfWeighted(candidates []candidate, clusters []*clusterv1alpha1.Cluster) []string {
	if len(clusters) == 0 || !t.hasReplicas() || !dividesByWeight(t.spec.Placement.ReplicaScheduling) {
		return nil
	}
	all, names := slices.Clone(candidates), sets.New[string]()
	for _, cluster := range clusters {
		all = append(all, candidate{cluster: cluster, name: cluster.Name})
		names.Insert(cluster.Name)
	}
	var weighted []string
	for _, party := range t.clusterWeights(all) {
		if names.Has(party.Name) {
			weighted = append(weighted, party.Name)
		}
	}
	slices.Sort(weighted)
	return weighted
}

// dividesByWeight reports whether the strategy divides replicas by static or equal weights.
func dividesByWeight(strategy *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	return strategy != nil && strategy.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided && !DividesByCapacity(strategy)
}
