package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/programs/gates"
)

func TestAgentControllerNamesMatchUpstream(t *testing.T) {
	known, off := Default(gates.New()).table().Names()
	if diff := cmp.Diff([]string{"certRotation", "clusterStatus", "endpointsliceCollect", "execution", "serviceExport", "workStatus"}, known); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"certRotation"}, off); diff != "" {
		t.Errorf("off by default (-want +got):\n%s", diff)
	}
}
