package placement

import (
	"maps"
	"slices"
)

// Names of the filters and scores, as used in the flag --plugins.
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

// Plugins selects filters and scores: "*" enables all, "name" enables one, and "-name" disables one and
// takes precedence. An empty list enables all.
type Plugins []string

// Enabled reports whether the filter or score with the given name is enabled.
func (p Plugins) Enabled(name string) bool {
	if slices.Contains(p, "-"+name) {
		return false
	}
	return len(p) == 0 || slices.Contains(p, "*") || slices.Contains(p, name)
}

// plugin holds the properties that filters and scores have in common.
type plugin struct {
	name string
	// featureGate reports whether the features enable the plugin. It is nil if the plugin needs no
	// feature.
	featureGate func(Features) bool
}

func (p plugin) isPermitted(features Features) bool {
	return p.featureGate == nil || p.featureGate(features)
}

// isEnabled reports whether the features enable the plugin and the user selected it.
func (p plugin) isEnabled(features Features, selected Plugins) bool {
	return selected.Enabled(p.name) && p.isPermitted(features)
}

// PluginNames returns the sorted names of the filters and scores that the features enable.
func PluginNames(features Features) []string {
	names := map[string]bool{}
	for _, filter := range filters() {
		names[filter.name] = filter.isPermitted(features)
	}
	for _, score := range scores() {
		names[score.name] = names[score.name] || score.isPermitted(features)
	}
	maps.DeleteFunc(names, func(_ string, permitted bool) bool { return !permitted })
	return slices.Sorted(maps.Keys(names))
}
