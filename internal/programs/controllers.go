package programs

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"

	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/programs/gates"
)

// Controller is one control loop of the controller manager or of an agent.
type Controller struct {
	// Name is its name in the flag --controllers; empty for one that cannot be
	// switched off.
	Name string
	// Help says what it does, in one line.
	Help string
	// Off says that * does not switch it on.
	Off bool
	// Gate is the feature gate without which it does not run, empty for none.
	Gate featuregate.Feature
	// Add registers it with a host. Nil is a controller of which this version knows
	// the name only, so that existing command lines are understood.
	Add func(*Host) error
}

// runs reports whether the controller runs.
func (c Controller) runs(selected []string, set *gates.Set) bool {
	return c.Add != nil && (c.Gate == "" || set.Enabled(c.Gate)) && (c.Name == "" || Selects(selected, c.Name, !c.Off))
}

// Selects reports whether a list as flags take it names something: "*" stands for
// everything that is on by default, "name" for that one, "-name" for not that one.
// What is said first of a name counts, and names count more than "*".
func Selects(list []string, name string, byDefault bool) bool {
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

// CheckSelection returns an error for every entry of the list that a flag takes
// which names nothing known.
func CheckSelection(flag, what string, list, known []string) error {
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

// ControllerNames are the names that --controllers knows, sorted, and those of them
// that * does not switch on.
func ControllerNames() (known, off []string) { return NamesOf(Controllers()) }

// NamesOf is ControllerNames for other tables.
func NamesOf(table []Controller) (known, off []string) {
	for _, controller := range table {
		if controller.Name == "" {
			continue
		}
		known = append(known, controller.Name)
		if controller.Off {
			off = append(off, controller.Name)
		}
	}
	slices.Sort(known)
	slices.Sort(off)
	return known, off
}

// AbsentControllers are those that the list names and this version does not have.
func AbsentControllers(list []string) []string { return AbsentOf(Controllers(), list) }

// AbsentOf is AbsentControllers for other tables.
func AbsentOf(table []Controller, list []string) []string {
	var absent []string
	for _, controller := range table {
		if controller.Add == nil && slices.Contains(list, controller.Name) {
			absent = append(absent, controller.Name)
		}
	}
	return absent
}

// addControllers adds the controllers that are selected, and the index that several
// of them share.
func addControllers(h *Host) error {
	if err := bindings.Index(h.Manager.GetFieldIndexer()); err != nil {
		return err
	}
	return addSelected(h, Controllers())
}

func addSelected(h *Host, table []Controller) error {
	for _, controller := range table {
		if !controller.runs(h.Settings.Controllers.Selected, h.Settings.Gates) {
			continue
		}
		if err := controller.Add(h); err != nil {
			return err
		}
	}
	return nil
}
