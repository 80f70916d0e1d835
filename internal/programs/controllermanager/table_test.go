package controllermanager

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/admission"
)

func TestValidateSelection(t *testing.T) {
	known, _ := Default(gates.New()).table.Names()
	if err := programs.ValidateSelection("controllers", "controller", []string{"*", "-binding", "execution", "hpaScaleTargetMarker"}, known); err != nil {
		t.Errorf("known names are rejected: %v", err)
	}
	err := programs.ValidateSelection("controllers", "controller", []string{"*", "bindings", "-exekution"}, known)
	if err == nil {
		t.Fatal("unknown names are accepted")
	}
	for _, want := range []string{"--controllers", `"bindings"`, `"-exekution"`, "known are agentcsrapproving", "workloadRebalancer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %s: %v", want, err)
		}
	}
}

// TestControllerNamesMatchUpstream compares the names of the controllers with the names that
// existing command lines use.
func TestControllerNamesMatchUpstream(t *testing.T) {
	table := Default(gates.New()).table
	known, off := table.Names()
	wantKnown := []string{
		"agentcsrapproving", "applicationFailover", "binding", "bindingStatus", "cluster", "clusterStatus", "clustertaintpolicy",
		"cronFederatedHorizontalPodAutoscaler", "deploymentReplicasSyncer", "endpointSlice", "endpointsliceCollect", "endpointsliceDispatch",
		"execution", "federatedHorizontalPodAutoscaler", "federatedResourceQuotaEnforcement", "federatedResourceQuotaStatus",
		"federatedResourceQuotaSync", "gracefulEviction", "hpaScaleTargetMarker", "multiclusterservice", "namespace", "remedy",
		"serviceExport", "serviceImport", "unifiedAuth", "workStatus", "workloadRebalancer",
	}
	if diff := cmp.Diff(wantKnown, known); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"deploymentReplicasSyncer", "hpaScaleTargetMarker"}, off); diff != "" {
		t.Errorf("off by default (-want +got):\n%s", diff)
	}
	for _, controller := range table {
		if controller.Help == "" {
			t.Errorf("controller %q has no help", controller.Name)
		}
	}
}

// TestUnimplementedKindsMatchAdmission compares the kinds of unimplemented controllers with the kinds for
// which admission warns that this version does not implement them.
func TestUnimplementedKindsMatchAdmission(t *testing.T) {
	// No controller of this program processes a MultiClusterIngress.
	byTable := append(Default(gates.New()).table.UnimplementedKinds(), "MultiClusterIngress")
	byAdmission := admission.UnimplementedKinds()
	for _, kind := range byAdmission {
		if !slices.Contains(byTable, kind) {
			t.Errorf("a controller processes %s: remove \"notImplemented: true\" from the row of %s in internal/servers/admission/kinds.go", kind, kind)
		}
	}
	for _, kind := range byTable {
		if !slices.Contains(byAdmission, kind) {
			t.Errorf("no controller processes %s: add \"notImplemented: true\" to the row of %s in internal/servers/admission/kinds.go", kind, kind)
		}
	}
}
