package programs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/programs/gates"
)

func TestSelects(t *testing.T) {
	tests := map[string]struct {
		list []string
		off  bool
		want bool
	}{
		"* enables a controller that is on by default":          {list: []string{"*"}, want: true},
		"* does not enable a controller that is off by default": {list: []string{"*"}, off: true},
		"a name enables a controller that is off by default":    {list: []string{"*", "remedy"}, off: true, want: true},
		"another name without * does not enable the controller": {list: []string{"binding"}},
		"a name without * enables the controller":               {list: []string{"remedy"}, want: true},
		"-name disables a controller that * enables":            {list: []string{"*", "-remedy"}},
		"the first entry for a name wins":                       {list: []string{"-remedy", "remedy", "*"}},
		"an empty list enables no controller":                   {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsSelected(test.list, "remedy", !test.off); got != test.want {
				t.Errorf("Selects(%q) = %t", test.list, got)
			}
		})
	}
}

func TestCheckSelection(t *testing.T) {
	known, _ := ControllerNames()
	if err := ValidateSelection("controllers", "controller", []string{"*", "-binding", "execution", "hpaScaleTargetMarker"}, known); err != nil {
		t.Errorf("known names are rejected: %v", err)
	}
	err := ValidateSelection("controllers", "controller", []string{"*", "bindings", "-exekution"}, known)
	if err == nil {
		t.Fatal("unknown names are accepted")
	}
	for _, want := range []string{"--controllers", `"bindings"`, `"-exekution"`, "known are agentcsrapproving", "workloadRebalancer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %s: %v", want, err)
		}
	}
}

func TestAgentControllerNamesMatchUpstream(t *testing.T) {
	known, off := ControllerNamesIn(AgentControllers())
	if diff := cmp.Diff([]string{"certRotation", "clusterStatus", "endpointsliceCollect", "execution", "serviceExport", "workStatus"}, known); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"certRotation"}, off); diff != "" {
		t.Errorf("off by default (-want +got):\n%s", diff)
	}
}

// TestControllerNamesMatchUpstream compares with the names that existing command lines use.
func TestControllerNamesMatchUpstream(t *testing.T) {
	known, off := ControllerNames()
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
	for _, controller := range Controllers() {
		if controller.Help == "" {
			t.Errorf("controller %q has no help", controller.Name)
		}
	}
}

func TestControllerIsEnabled(t *testing.T) {
	add := func(*Host) error { return nil }
	tests := map[string]struct {
		controller Controller
		selected   []string
		gates      string
		want       bool
	}{
		"a selected controller runs":                           {Controller{Name: "x", Add: add}, []string{"*"}, "", true},
		"a disabled controller does not run":                   {Controller{Name: "x", Add: add}, []string{"*", "-x"}, "", false},
		"a controller without a name cannot be disabled":       {Controller{Add: add}, nil, "", true},
		"a controller without implementation does not run":     {Controller{Name: "x"}, []string{"x"}, "", false},
		"a disabled gate disables the controller":              {Controller{Name: "x", Gate: gates.Failover, Add: add}, []string{"x"}, "", false},
		"an enabled gate permits the controller":               {Controller{Name: "x", Gate: gates.Failover, Add: add}, []string{"*"}, "Failover=true", true},
		"a disabled gate disables a controller without a name": {Controller{Gate: gates.PropagateDeps, Add: add}, nil, "PropagateDeps=false", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := gates.New()
			if err := set.Set(test.gates); err != nil {
				t.Fatal(err)
			}
			if got := test.controller.isEnabled(test.selected, set); got != test.want {
				t.Errorf("isEnabled = %t", got)
			}
		})
	}
}
