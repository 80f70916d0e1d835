package programs

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"

	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/programs/gates"
)

// Controller is one controller of the controller manager or of an agent.
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
	// Add registers the controller with a host. It is nil if this version does not implement
	// the controller but accepts its name in existing command lines.
	Add func(*Host) error
}

// isEnabled reports whether the controller runs.
func (c Controller) isEnabled(selected []string, set *gates.Set) bool {
	return c.Add != nil && (c.Gate == "" || set.Enabled(c.Gate)) && (c.Name == "" || IsSelected(selected, c.Name, !c.OffByDefault))
}

// IsSelected reports whether the list of a flag enables name: "*" enables every controller that is
// on by default, "name" enables one, and "-name" disables one. The first entry for a name wins,
// and a name wins over "*".
func IsSelected(list []string, name string, byDefault bool) bool {
	for _, entry := range list {
		if entry == name {
			return true
		}
		if entry == "-"+name {
			return false
		}
	}
	return byDefault && slices.Contains(list, "*")
}

// ValidateSelection returns an error that names every entry of the list that is not known.
func ValidateSelection(flag, what string, list, known []string) error {
	var unknown []string
	for _, entry := range list {
		if entry != "*" && !slices.Contains(known, strings.TrimPrefix(entry, "-")) {
			unknown = append(unknown, fmt.Sprintf("%q", entry))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("--%s: there is no %s %s; known are %s", flag, what, strings.Join(unknown, ", "), strings.Join(known, ", "))
}

// ControllerNames returns the names that --controllers accepts, sorted, and those of them that
// are off by default.
func ControllerNames() (known, off []string) { return ControllerNamesIn(Controllers()) }

// ControllerNamesIn returns the same as ControllerNames for another table.
func ControllerNamesIn(table []Controller) (known, off []string) {
	for _, controller := range table {
		if controller.Name == "" {
			continue
		}
		known = append(known, controller.Name)
		if controller.OffByDefault {
			off = append(off, controller.Name)
		}
	}
	slices.Sort(known)
	slices.Sort(off)
	return known, off
}

// UnimplementedControllers returns the names in the list that this version accepts but does not
// implement.
func UnimplementedControllers(list []string) []string { return UnimplementedIn(Controllers(), list) }

// UnimplementedIn returns the same as UnimplementedControllers for another table.
func UnimplementedIn(table []Controller, list []string) []string {
	var absent []string
	for _, controller := range table {
		if controller.Add == nil && slices.Contains(list, controller.Name) {
			absent = append(absent, controller.Name)
		}
	}
	return absent
}

// addControllers adds the selected controllers, and the index that several of them share.
func addControllers(h *Host) error {
	if err := bindings.AddClusterIndex(h.Manager.GetFieldIndexer()); err != nil {
		return err
	}
	return addSelected(h, Controllers())
}

func addSelected(h *Host, table []Controller) error {
	for _, controller := range table {
		if !controller.isEnabled(h.Settings.Controllers.Selected, h.Settings.Gates) {
			continue
		}
		if err := controller.Add(h); err != nil {
			return err
		}
	}
	return nil
}
