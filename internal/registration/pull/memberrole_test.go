package pull

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

func TestMemberRoleLimitsAgent(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "deployers"}}
	register := Register{Name: "edge", MemberRole: role.Name, Member: &rest.Config{Host: "https://10.0.0.1"}}.withDefaults()
	member := clusterclienttest.NewClient(t, "", role)
	if err := register.installAgent(t.Context(), member, []byte("kubeconfig")); err != nil {
		t.Fatal(err)
	}
	bound := &rbacv1.ClusterRoleBindingList{}
	roles := &rbacv1.ClusterRoleList{}
	for _, each := range []error{member.API.List(t.Context(), bound), member.API.List(t.Context(), roles)} {
		if each != nil {
			t.Fatal(each)
		}
	}
	grants := map[string]string{}
	for _, binding := range bound.Items {
		grants[binding.Name] = binding.RoleRef.Name
	}
	want := map[string]string{"karmada-agent:edge": "karmada-agent:edge", "karmada-agent:edge:member-role": "deployers"}
	if diff := cmp.Diff(want, grants); diff != "" {
		t.Errorf("roles of the agent (-want +got):\n%s", diff)
	}
	for _, each := range roles.Items {
		for _, rule := range each.Rules {
			if slices.Contains(rule.Verbs, "*") {
				t.Errorf("%s allows everything: %v", each.Name, rule)
			}
		}
	}
	if !slices.Contains(register.agentCommand(), "--report-secrets=None") {
		t.Errorf("the agent would give the control plane an account that may do everything: %v", register.agentCommand())
	}
	if err := register.revokeMemberRole(t.Context(), member); err != nil {
		t.Fatal(err)
	}
	if err := member.API.List(t.Context(), bound); err != nil || len(bound.Items) > 0 {
		t.Errorf("remaining bindings %v, %v", bound.Items, err)
	}
}

func TestCheckMemberRole(t *testing.T) {
	member := clusterclienttest.NewClient(t, "")
	err := Register{Name: "edge", MemberRole: "deployers"}.verifyMemberRole(t.Context(), member)
	if err == nil || !strings.Contains(err.Error(), `has no ClusterRole "deployers": create it there first`) {
		t.Errorf("got %v", err)
	}
	if err := (Register{Name: "edge"}).verifyMemberRole(t.Context(), member); err != nil {
		t.Errorf("without a role: %v", err)
	}
}
