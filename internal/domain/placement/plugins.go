package placement

import "slices"

// Names of the filters and scores, as the flag --plugins takes them.
const (
	PluginAPIEnablement        = "APIEnablement"
	PluginTaintToleration      = "TaintToleration"
	PluginClusterAffinity      = "ClusterAffinity"
	PluginSpreadConstraint     = "SpreadConstraint"
	PluginClusterEviction      = "ClusterEviction"
	PluginClusterLocality      = "ClusterLocality"
	PluginWorkloadAffinity     = "WorkloadAffinity"
	PluginWorkloadAntiAffinity = "WorkloadAntiAffinity"
)

// Plugins selects filters and scores: "*" stands for all, "name" for that one,
// "-name" for not that one, which wins over the others. None given means all.
type Plugins []string

// Enabled reports whether the filter or score of that name takes part.
func (p Plugins) Enabled(name string) bool {
	if slices.Contains(p, "-"+name) {
		return false
	}
	return len(p) == 0 || slices.Contains(p, "*") || slices.Contains(p, name)
}
