package script

import (
	"fmt"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// validateComponents returns an error if components cannot be scheduled.
func validateComponents(components []workv1alpha2.Component) error {
	names := map[string]bool{}
	for i := range components {
		component := &components[i]
		switch {
		case component.Name == "":
			return fmt.Errorf("the function returned components[%d] without a name: set it", i)
		case names[component.Name]:
			return fmt.Errorf("the function returned two components with the name %q: use each name once", shorten(component.Name))
		case component.Replicas < 0:
			return fmt.Errorf("the function returned components[%d] with %d replicas: return 0 or more", i, component.Replicas)
		}
		names[component.Name] = true
	}
	return nil
}
