package enroll

import (
	"encoding/json"
	"fmt"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// patchCommand returns the command with which an administrator can set the stored Cluster's location fields
// to the agent's flags. It ignores flags that are not set, and is empty if all others match the stored
// fields.
func (e Enrollment) patchCommand(stored *clusterv1alpha1.Cluster) string {
	spec := map[string]any{}
	if e.Provider != "" && e.Provider != stored.Spec.Provider {
		spec["provider"] = e.Provider
	}
	if e.Region != "" && e.Region != stored.Spec.Region {
		spec["region"] = e.Region
	}
	zones := stored.Spec.Zones
	if stored.Spec.Zone != "" {
		zones = []string{stored.Spec.Zone}
		if len(e.Zones) > 0 {
			spec["zone"] = nil
		}
	}
	if len(e.Zones) > 0 && !slices.Equal(e.Zones, zones) {
		spec["zones"] = e.Zones
	} else {
		delete(spec, "zone")
	}
	if len(spec) == 0 {
		return ""
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return fmt.Sprintf("kubectl edit cluster %s", e.Name)
	}
	return fmt.Sprintf("kubectl patch cluster %s --type=merge -p '%s'", e.Name, patch)
}
