package aggregated

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// customizedClusterResourceModeling is the feature gate of the resource models of Clusters. The
// gate is enabled by default.
const customizedClusterResourceModeling featuregate.Feature = "CustomizedClusterResourceModeling"

// resourceModelsEnabled reports whether the feature gate of resource models is enabled.
func (o *Options) resourceModelsEnabled() bool {
	if on, given := o.featureGates[string(customizedClusterResourceModeling)]; o.Gates == nil && given {
		return on
	}
	if o.Gates == nil || !o.isKarmadaGate(customizedClusterResourceModeling) {
		return true
	}
	return o.Gates.Enabled(customizedClusterResourceModeling)
}

func (o *Options) isKarmadaGate(name featuregate.Feature) bool {
	if o.Gates == nil {
		return name == customizedClusterResourceModeling
	}
	_, known := o.Gates.GetAll()[name]
	return known
}

// splitFeatureGates separates the named gates into gates of Karmada, gates of the library, and
// unknown gates.
func (o *Options) splitFeatureGates() (karmada, library map[string]bool, unknown []string) {
	karmada, library = map[string]bool{}, map[string]bool{}
	libraryGates := utilfeature.DefaultMutableFeatureGate.GetAll()
	for name, on := range o.featureGates {
		_, inLibrary := libraryGates[featuregate.Feature(name)]
		switch {
		case o.isKarmadaGate(featuregate.Feature(name)):
			karmada[name] = on
		case inLibrary:
			library[name] = on
		default:
			unknown = append(unknown, name)
		}
	}
	return karmada, library, unknown
}

func (o *Options) validateFeatureGates() []error {
	var errs []error
	_, _, unknown := o.splitFeatureGates()
	for _, name := range unknown {
		errs = append(errs, fmt.Errorf("--feature-gates: %q is unknown", name))
	}
	return errs
}

// Complete sets the gates in --feature-gates. New also calls it. It changes gates of the library only if the flag
// contains them, because the whole process shares them.
func (o *Options) Complete() error {
	karmada, library, _ := o.splitFeatureGates()
	if o.Gates != nil && len(karmada) > 0 {
		if err := o.Gates.SetFromMap(karmada); err != nil {
			return fmt.Errorf("setting feature gates: %w", err)
		}
	}
	if len(library) > 0 {
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(library); err != nil {
			return fmt.Errorf("setting feature gates of the API server library: %w", err)
		}
	}
	return nil
}
