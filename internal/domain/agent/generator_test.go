package agent_test

import (
	"testing"

	"karmada.io/karmada/internal/domain/agent"
)

func TestGeneratedFor(t *testing.T) {
	for name, want := range map[string]string{
		"system:karmada:east:agent": "east", "system:karmada:east:agent-work": "east", "system:karmada:east:agent-secret": "east", "karmada-es-east": "east",
		"karmada-cluster": "", "system:karmada:agent-rbac-generator": "", "system:karmada:east:other": "", "east": "",
	} {
		if got := agent.GeneratedFor(name); got != want {
			t.Errorf("%s is for cluster %q, want %q", name, got, want)
		}
	}
	for _, object := range agent.RBACObjects("east", "karmada-cluster") {
		if got := agent.GeneratedFor(object.GetName()); got != "east" {
			t.Errorf("%s is for cluster %q", object.GetName(), got)
		}
	}
}
