package agent_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/agent"
)

func TestClusterOf(t *testing.T) {
	tests := map[string]struct {
		user, want string
	}{
		"an agent":                {"system:karmada:agent:east", "east"},
		"the longest name":        {"system:karmada:agent:" + strings.Repeat("a", 48), strings.Repeat("a", 48)},
		"a name that is too long": {"system:karmada:agent:" + strings.Repeat("a", 49), ""},
		"no name":                 {"system:karmada:agent:", ""},
		"an invalid cluster name": {"system:karmada:agent:East", ""},
		"a name with a colon":     {"system:karmada:agent:east:west", ""},
		"the generator":           {agent.GeneratorUser, ""},
		"the name of a Secret of another cluster": {"system:karmada:agent:east-impersonator", ""},
		"another user":           {"system:admin", ""},
		"a group":                {agent.Group, ""},
		"a prefix in the middle": {"x-system:karmada:agent:east", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := agent.ClusterOf(test.user)
			if got != test.want || ok != (test.want != "") {
				t.Errorf("ClusterOf(%q) = %q, %t, want %q", test.user, got, ok, test.want)
			}
			if ok && agent.User(got) != test.user {
				t.Errorf("User(%q) = %q, want %q", got, agent.User(got), test.user)
			}
		})
	}
}

// unrestrictedVerbs maps a resource to the verbs that rules may allow without resource names. In the
// cluster's namespaces, rules may allow more verbs.
var unrestrictedVerbs = map[string]string{
	"clusters": "create", "leases": "create", "secrets": "create",
	"events": "create patch update", "certificatesigningrequests": "get create",
	"resourceinterpreterwebhookconfigurations": "get list watch", "resourceinterpretercustomizations": "get list watch",
	"works": "get list watch update patch delete", "works/status": "get patch update",
}

func TestPermissionsStayInOwnCluster(t *testing.T) {
	names := rapid.StringMatching(`[a-z]([-a-z0-9]{0,10}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		cluster, namespace := names.Draw(t, "cluster"), names.Draw(t, "namespace")
		own := map[string]bool{
			cluster: true, cluster + "-impersonator": true, "karmada-agent-" + cluster: true,
			"karmada-es-" + cluster: true, namespace: true, "karmada-cluster": true, "kube-system": true, agent.RoleName(cluster): true,
		}
		// All agents read the epoch, which contains no secret data.
		const epochReading = "configmaps [karmada-epoch] [get list watch]"
		for _, object := range agent.RBACObjects(cluster, namespace) {
			for _, rule := range rulesOf(object) {
				if len(rule.ResourceNames) == 0 {
					for _, resource := range rule.Resources {
						if want := unrestrictedVerbs[resource]; want != strings.Join(rule.Verbs, " ") {
							t.Fatalf("%s lets %s all %s, want %q", object.GetName(), rule.Verbs, resource, want)
						}
					}
				}
				if object.GetNamespace() == "karmada-system" && fmt.Sprintf("%s %s %s", rule.Resources[0], rule.ResourceNames, rule.Verbs) == epochReading {
					continue
				}
				for _, name := range rule.ResourceNames {
					if !own[name] {
						t.Fatalf("%s names %q", object.GetName(), name)
					}
				}
				if rule.Resources[0] == "works" && object.GetNamespace() != "karmada-es-"+cluster {
					t.Fatalf("%s allows Works in %q", object.GetName(), object.GetNamespace())
				}
				if rule.Resources[0] == "secrets" && object.GetNamespace() != namespace {
					t.Fatalf("%s allows Secrets in %q", object.GetName(), object.GetNamespace())
				}
			}
			for _, subject := range subjectsOf(object) {
				if subject.Kind != rbacv1.UserKind || subject.Name != agent.User(cluster) {
					t.Fatalf("%s is for %v", object.GetName(), subject)
				}
			}
		}
	})
}

func TestPermissionObjects(t *testing.T) {
	objects := agent.RBACObjects("east", "karmada-cluster")
	if role, ok := objects[0].(*rbacv1.ClusterRole); !ok || role.Name != "system:karmada:east:agent" {
		t.Errorf("the first object is %T %s, want the ClusterRole", objects[0], objects[0].GetName())
	}
	seen := map[string]bool{}
	for _, object := range objects {
		key := object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetNamespace() + "/" + object.GetName()
		if seen[key] {
			t.Errorf("%s exists twice", key)
		}
		seen[key] = true
	}
	for _, want := range []string{
		"ClusterRole /system:karmada:east:agent", "ClusterRoleBinding /system:karmada:east:agent",
		"Role karmada-cluster/system:karmada:east:agent-secret", "RoleBinding karmada-cluster/system:karmada:east:agent-secret",
		"Role karmada-cluster/system:karmada:east:agent-lease", "RoleBinding karmada-cluster/system:karmada:east:agent-lease",
		"Role karmada-es-east/system:karmada:east:agent-work", "RoleBinding karmada-es-east/system:karmada:east:agent-work",
	} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

func rulesOf(object agent.Object) []rbacv1.PolicyRule {
	switch role := object.(type) {
	case *rbacv1.ClusterRole:
		return role.Rules
	case *rbacv1.Role:
		return role.Rules
	}
	return nil
}

func subjectsOf(object agent.Object) []rbacv1.Subject {
	switch binding := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		return binding.Subjects
	case *rbacv1.RoleBinding:
		return binding.Subjects
	}
	return nil
}
