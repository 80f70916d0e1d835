package aggregated

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// customizedClusterResourceModeling is the gate behind which Clusters have
// resource models; it is on by default.
const customizedClusterResourceModeling featuregate.Feature = "CustomizedClusterResourceModeling"

// resourceModels reports whether the gate is on.
func (o *Options) resourceModels() bool {
	if on, given := o.featureGates[string(customizedClusterResourceModeling)]; o.Gates == nil && given {
		return on
	}
	if o.Gates == nil || !o.knowsGate(customizedClusterResourceModeling) {
		return true
	}
	return o.Gates.Enabled(customizedClusterResourceModeling)
}

func (o *Options) knowsGate(name featuregate.Feature) bool {
	if o.Gates == nil {
		return name == customizedClusterResourceModeling
	}
	_, known := o.Gates.GetAll()[name]
	return known
}

// splitFeatureGates tells the named gates of Karmada from those of the library.
func (o *Options) splitFeatureGates() (karmada, library map[string]bool, unknown []string) {
	karmada, library = map[string]bool{}, map[string]bool{}
	libraryGates := utilfeature.DefaultMutableFeatureGate.GetAll()
	for name, on := range o.featureGates {
		_, inLibrary := libraryGates[featuregate.Feature(name)]
		switch {
		case o.knowsGate(featuregate.Feature(name)):
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

// ApplyFeatureGates sets the gates that the flag names; New does it too. The
// library reads its own from a gate that the whole process shares, hence that one is
// touched only when the flag asks for it.
func (o *Options) ApplyFeatureGates() error {
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
