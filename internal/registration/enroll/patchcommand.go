package enroll

import (
	"encoding/json"
	"fmt"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// patchCommand returns the command that an administrator can use to change the location fields of
// the stored Cluster to the flags of the agent. Flags that are not set are ignored. The command is
// empty if all set flags match the stored fields.
func (a Enrollment) patchCommand(stored *clusterv1alpha1.Cluster) string {
	spec := map[string]any{}
	if a.Provider != "" && a.Provider != stored.Spec.Provider {
		spec["provider"] = a.Provider
	}
	if a.Region != "" && a.Region != stored.Spec.Region {
		spec["region"] = a.Region
	}
	zones := stored.Spec.Zones
	if stored.Spec.Zone != "" {
		zones = []string{stored.Spec.Zone}
		if len(a.Zones) > 0 {
			spec["zone"] = nil
		}
	}
	if len(a.Zones) > 0 && !slices.Equal(a.Zones, zones) {
		spec["zones"] = a.Zones
	} else {
		delete(spec, "zone")
	}
	if len(spec) == 0 {
		return ""
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return fmt.Sprintf("kubectl edit cluster %s", a.Name)
	}
	return fmt.Sprintf("kubectl patch cluster %s --type=merge -p '%s'", a.Name, patch)
}
