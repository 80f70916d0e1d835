package placement

import (
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// score is a plugin that rates clusters.
type score struct {
	plugin
	// rate returns the cluster's points, from 0 to maxScore. The points of all scores are added with
	// the same weight.
	rate func(*task, *clusterv1alpha1.Cluster) int64
}

// maxScore is the maximum number of points that a score gives to a cluster.
const maxScore = 100

// scores returns the scores in the order in which they run. The order does not affect the sum.
func scores() []score {
	return []score{
		{plugin{name: PluginClusterLocality}, rateClusterLocality},
	}
}

// clusterScores returns the sum of each feasible cluster's points, in the order of feasible.
func (t *task) clusterScores(feasible []*clusterv1alpha1.Cluster) []int64 {
	defer t.input.Observer.startExtensionPoint(ExtensionPointScore)()
	sums := make([]int64, len(feasible))
	for i := range t.scores {
		t.addScore(&t.scores[i], feasible, sums)
	}
	return sums
}

// addScore adds each cluster's points to sums.
func (t *task) addScore(score *score, feasible []*clusterv1alpha1.Cluster, sums []int64) {
	defer t.input.Observer.startPlugin(ExtensionPointScore, score.name)()
	for i, cluster := range feasible {
		sums[i] += score.rate(t, cluster)
	}
}

// rateClusterLocality returns more points for clusters that are already targets of the template.
func rateClusterLocality(t *task, cluster *clusterv1alpha1.Cluster) int64 {
	if t.isTarget(cluster.Name) {
		return maxScore
	}
	return 0
}
