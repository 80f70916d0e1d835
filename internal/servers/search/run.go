package search

import (
	"fmt"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
)

// RunOptions are the options of the API server library that karmada-search has in addition to those
// of other aggregated API servers: limits, timeouts, versions and feature gates.
type RunOptions struct {
	options *genericoptions.ServerRunOptions
	gates   featuregate.MutableVersionedFeatureGate
}

// newRunOptions returns the default options. The options have a registry of versions and gates of
// their own, because other API servers of the process use the registry of the process. karmada are
// the feature gates of Karmada, which are accepted too.
func newRunOptions(karmada featuregate.MutableFeatureGate) *RunOptions {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	registry := basecompatibility.NewComponentGlobalsRegistry()
	run := &RunOptions{gates: gates}
	if karmada != nil {
		addUnknownGates(gates, karmada.GetAll())
	}
	// The component is new in the registry, so the registration cannot fail.
	_ = registry.Register(basecompatibility.DefaultKubeComponent, compatibility.DefaultBuildEffectiveVersion(), gates)
	run.options = genericoptions.NewServerRunOptionsForComponent(basecompatibility.DefaultKubeComponent, registry)
	return run
}

// addUnknownGates adds the gates of Karmada that the library does not know.
func addUnknownGates(gates featuregate.MutableFeatureGate, karmada map[featuregate.Feature]featuregate.FeatureSpec) {
	known := gates.GetAll()
	for name, spec := range karmada {
		if _, is := known[name]; !is {
			_ = gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{name: spec}) // it is unknown, so adding it cannot fail
		}
	}
}

func (r *RunOptions) addFlags(flags *pflag.FlagSet) { r.options.AddUniversalFlags(flags) }

// setGates sets the gates that --feature-gates names. Gates of the library are changed only if
// they differ, because the whole process shares them.
func (r *RunOptions) setGates() error {
	if err := r.options.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("setting --feature-gates and --emulated-version: %w", err)
	}
	changed := map[string]bool{}
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		if on := r.gates.Enabled(name); on != utilfeature.DefaultMutableFeatureGate.Enabled(name) {
			changed[string(name)] = on
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(changed); err != nil {
		return fmt.Errorf("setting feature gates of the API server library: %w", err)
	}
	return nil
}

// apply applies the options to the configuration of a server.
func (r *RunOptions) apply(config *genericapiserver.RecommendedConfig) error {
	if err := r.options.ApplyTo(&config.Config); err != nil {
		return fmt.Errorf("applying the options of the API server: %w", err)
	}
	return nil
}
