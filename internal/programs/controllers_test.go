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
		"a star is all that are on by default":         {list: []string{"*"}, want: true},
		"a star is none that is off by default":        {list: []string{"*"}, off: true},
		"a name switches on what is off by default":    {list: []string{"*", "remedy"}, off: true, want: true},
		"a name alone is nothing but that":             {list: []string{"binding"}},
		"a name without a star switches on":            {list: []string{"remedy"}, want: true},
		"a minus switches off what a star switches on": {list: []string{"*", "-remedy"}},
		"what is said first of a name counts":          {list: []string{"-remedy", "remedy", "*"}},
		"nothing is nothing":                           {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Selects(test.list, "remedy", !test.off); got != test.want {
				t.Errorf("Selects(%q) = %t", test.list, got)
			}
		})
	}
}

func TestCheckSelection(t *testing.T) {
	known, _ := ControllerNames()
	if err := CheckSelection("controllers", "controller", []string{"*", "-binding", "execution", "hpaScaleTargetMarker"}, known); err != nil {
		t.Errorf("known names are refused: %v", err)
	}
	err := CheckSelection("controllers", "controller", []string{"*", "bindings", "-exekution"}, known)
	if err == nil {
		t.Fatal("unknown names are taken")
	}
	for _, told := range []string{"--controllers", `"bindings"`, `"-exekution"`, "known are agentcsrapproving", "workloadRebalancer"} {
		if !strings.Contains(err.Error(), told) {
			t.Errorf("the error does not tell %s: %v", told, err)
		}
	}
}

func TestControllersOfAgentsAreThoseOfExistingCommandLines(t *testing.T) {
	known, off := NamesOf(AgentControllers())
	if diff := cmp.Diff([]string{"certRotation", "clusterStatus", "endpointsliceCollect", "execution", "serviceExport", "workStatus"}, known); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"certRotation"}, off); diff != "" {
		t.Errorf("off by default (-want +got):\n%s", diff)
	}
}

// TestControllersAreThoseOfExistingCommandLines compares with the names that users
// know.
func TestControllersAreThoseOfExistingCommandLines(t *testing.T) {
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

func TestRuns(t *testing.T) {
	add := func(*Host) error { return nil }
	tests := map[string]struct {
		controller Controller
		selected   []string
		gates      string
		want       bool
	}{
		"a selected controller runs":                  {Controller{Name: "x", Add: add}, []string{"*"}, "", true},
		"one that is switched off does not":           {Controller{Name: "x", Add: add}, []string{"*", "-x"}, "", false},
		"one without a name cannot be switched off":   {Controller{Add: add}, nil, "", true},
		"one that is not there does not run":          {Controller{Name: "x"}, []string{"x"}, "", false},
		"a gate that is off keeps it from running":    {Controller{Name: "x", Gate: gates.Failover, Add: add}, []string{"x"}, "", false},
		"a gate that is on lets it run":               {Controller{Name: "x", Gate: gates.Failover, Add: add}, []string{"*"}, "Failover=true", true},
		"a gate switches off even one without a name": {Controller{Gate: gates.PropagateDeps, Add: add}, nil, "PropagateDeps=false", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := gates.New()
			if err := set.Set(test.gates); err != nil {
				t.Fatal(err)
			}
			if got := test.controller.runs(test.selected, set); got != test.want {
				t.Errorf("runs = %t", got)
			}
		})
	}
}
