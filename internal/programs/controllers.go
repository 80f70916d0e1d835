package programs

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"karmada.io/karmada/internal/programs/gates"
)

// Controller is one row of a ControllerTable. The controller's package defines its options. The row sets
// only the options that several controllers of the process share.
type Controller struct {
	// Name is the name of the controller in the flag --controllers. It is empty for a
	// controller that cannot be disabled.
	Name string
	// Help describes the controller in one line.
	Help string
	// OffByDefault means that * in --controllers does not enable the controller.
	OffByDefault bool
	// Gate is the feature gate that the controller requires. It is empty if there is none.
	Gate featuregate.Feature
	// Kinds are the kinds that have no effect without the controller.
	Kinds []string
	// Options are the options whose flags no other controller reads, or the ignored flags of a
	// controller that is not implemented. nil means that the controller has no such options.
	Options Options
	// Add registers the controller with a host. It is nil if this version does not implement the
	// controller, but accepts its name for compatibility with existing command lines.
	Add func(*Host) error
}

// isEnabled reports whether the controller is selected, implemented and enabled by its feature
// gate.
func (c *Controller) isEnabled(selected []string, set *gates.Set) bool {
	return c.Add != nil && (c.Gate == "" || set.Enabled(c.Gate)) && (c.Name == "" || IsSelected(selected, c.Name, !c.OffByDefault))
}

// ControllerTable lists the controllers of the controller manager or of the agent, in the order in which
// they process an object.
type ControllerTable []Controller

// Names returns the names that --controllers accepts, sorted. off contains the names of the
// controllers that are disabled by default.
func (t ControllerTable) Names() (known, off []string) {
	for i := range t {
		if t[i].Name == "" {
			continue
		}
		known = append(known, t[i].Name)
		if t[i].OffByDefault {
			off = append(off, t[i].Name)
		}
	}
	slices.Sort(known)
	slices.Sort(off)
	return known, off
}

// unimplemented returns the names in the list that this version accepts but does not implement.
func (t ControllerTable) unimplemented(list []string) []string {
	var names []string
	for i := range t {
		if t[i].Add == nil && slices.Contains(list, t[i].Name) {
			names = append(names, t[i].Name)
		}
	}
	return names
}

// ineffectiveGates returns the feature gates that only unimplemented controllers require.
func (t ControllerTable) ineffectiveGates() []featuregate.Feature {
	var gates []featuregate.Feature
	for i := range t {
		isImplemented := slices.ContainsFunc(t, func(c Controller) bool { return c.Gate == t[i].Gate && c.Add != nil })
		if t[i].Gate != "" && !isImplemented && !slices.Contains(gates, t[i].Gate) {
			gates = append(gates, t[i].Gate)
		}
	}
	return gates
}

// UnimplementedKinds returns the kinds whose controllers this version does not implement, sorted.
func (t ControllerTable) UnimplementedKinds() []string {
	var kinds []string
	for i := range t {
		if t[i].Add == nil {
			kinds = append(kinds, t[i].Kinds...)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// AddFlags adds the flags that only one controller reads.
func (t ControllerTable) AddFlags(set *pflag.FlagSet) {
	for i := range t {
		if t[i].Options != nil {
			t[i].Options.AddFlags(set)
		}
	}
}

// Validate returns the errors in the flags that only one controller reads.
func (t ControllerTable) Validate() error {
	var errs []error
	for i := range t {
		if t[i].Options != nil {
			errs = append(errs, t[i].Options.Validate())
		}
	}
	return errors.Join(errs...)
}

// AddTo registers the selected controllers with a host.
func (t ControllerTable) AddTo(h *Host, selected []string) error {
	for i := range t {
		if !t[i].isEnabled(selected, h.Gates) {
			continue
		}
		if err := t[i].Add(h); err != nil {
			return err
		}
	}
	return nil
}
