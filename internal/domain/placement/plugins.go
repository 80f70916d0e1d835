package placement

import "slices"

// Names of the filters and scores, as in the flag --plugins.
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

// Plugins selects filters and scores: "*" means all, "name" enables one, and "-name" disables
// one and takes precedence. An empty list means all.
type Plugins []string

// Enabled reports whether the filter or score with that name is enabled.
func (p Plugins) Enabled(name string) bool {
	if slices.Contains(p, "-"+name) {
		return false
	}
	return len(p) == 0 || slices.Contains(p, "*") || slices.Contains(p, name)
}
