package impersonation_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/impersonation"
)

func newRule(group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
}

func newRole(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func newBinding(role string, subjects ...rbacv1.Subject) rbacv1.ClusterRoleBinding {
	return rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: subjects}
}

func newSubject(kind, name string) rbacv1.Subject { return rbacv1.Subject{Kind: kind, Name: name} }

func TestRulesThatAllowClusters(t *testing.T) {
	tests := map[string]struct {
		rules                    []rbacv1.PolicyRule
		allowsCluster, allowsAny bool
	}{
		"the proxy of all clusters":                        {[]rbacv1.PolicyRule{newRule("cluster.karmada.io", "clusters/proxy")}, true, true},
		"the proxy of this cluster":                        {[]rbacv1.PolicyRule{newRule("cluster.karmada.io", "clusters/proxy", "m2", "m1")}, true, true},
		"not the proxy of another cluster":                 {[]rbacv1.PolicyRule{newRule("cluster.karmada.io", "clusters/proxy", "m2")}, false, true},
		"the proxy of all clusters by its name":            {[]rbacv1.PolicyRule{newRule("cluster.karmada.io", "clusters/proxy", "*")}, true, true},
		"any resource of the group":                        {[]rbacv1.PolicyRule{newRule("cluster.karmada.io", "*")}, true, true},
		"any resource of the group, under another name":    {[]rbacv1.PolicyRule{newRule("cluster.karmada.io", "*", "m2")}, false, true},
		"the proxy in any group":                           {[]rbacv1.PolicyRule{newRule("*", "clusters/proxy")}, true, true},
		"the proxies of all resources":                     {[]rbacv1.PolicyRule{newRule("*", "*/proxy")}, true, true},
		"all resources, as for administrators":             {[]rbacv1.PolicyRule{newRule("*", "*")}, true, true},
		"the proxy of search":                              {[]rbacv1.PolicyRule{newRule("search.karmada.io", "proxying/proxy")}, true, true},
		"the proxy of search, resource names are ignored":  {[]rbacv1.PolicyRule{newRule("search.karmada.io", "proxying/proxy", "m2")}, true, true},
		"any resource of search":                           {[]rbacv1.PolicyRule{newRule("search.karmada.io", "*")}, true, true},
		"one rule among others":                            {[]rbacv1.PolicyRule{newRule("", "pods"), newRule("cluster.karmada.io", "clusters/proxy")}, true, true},
		"one group and one resource among others":          {[]rbacv1.PolicyRule{{APIGroups: []string{"", "cluster.karmada.io"}, Resources: []string{"clusters", "clusters/proxy"}}}, true, true},
		"not clusters without their proxy":                 {[]rbacv1.PolicyRule{newRule("cluster.karmada.io", "clusters")}, false, false},
		"not a resource of the same name in another group": {[]rbacv1.PolicyRule{newRule("", "clusters/proxy")}, false, false},
		"not a resource of the wrong group":                {[]rbacv1.PolicyRule{newRule("search.karmada.io", "clusters/proxy"), newRule("cluster.karmada.io", "proxying/proxy")}, false, false},
		"not group and resource of different rules":        {[]rbacv1.PolicyRule{newRule("cluster.karmada.io", "clusters"), newRule("", "*")}, false, false},
		"not non-resource URLs":                            {[]rbacv1.PolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}, false, false},
		"no rules":                                         {nil, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := impersonation.AllowsCluster(test.rules, "m1"); got != test.allowsCluster {
				t.Errorf("allows access to m1: %v", got)
			}
			if got := impersonation.AllowsAnyCluster(test.rules); got != test.allowsAny {
				t.Errorf("allows access to any cluster: %v", got)
			}
		})
	}
}

func TestSubjectsOf(t *testing.T) {
	roles := []rbacv1.ClusterRole{
		newRole("east", newRule("cluster.karmada.io", "clusters/proxy", "m1")),
		newRole("west", newRule("cluster.karmada.io", "clusters/proxy", "m2")),
		newRole("cluster-admin", newRule("*", "*")),
		newRole("view", newRule("", "pods")),
	}
	tests := map[string]struct {
		bindings []rbacv1.ClusterRoleBinding
		want     impersonation.Subjects
	}{
		"no bindings": {},
		"subjects of each kind": {
			bindings: []rbacv1.ClusterRoleBinding{newBinding("east", newSubject("User", "ann"), newSubject("Group", "dev"), newSubject("ServiceAccount", "robot"))},
			want:     impersonation.Subjects{Users: []string{"ann"}, ServiceAccounts: []string{"robot"}, Groups: []string{"dev"}},
		},
		"the group of administrators": {
			bindings: []rbacv1.ClusterRoleBinding{newBinding("cluster-admin", newSubject("Group", "system:masters"))},
			want:     impersonation.Subjects{Groups: []string{"system:masters"}},
		},
		"sorted and unique": {
			bindings: []rbacv1.ClusterRoleBinding{
				newBinding("east", newSubject("User", "cid"), newSubject("User", "ann")),
				newBinding("cluster-admin", newSubject("User", "bob"), newSubject("User", "ann")),
			},
			want: impersonation.Subjects{Users: []string{"ann", "bob", "cid"}},
		},
		"a service account in several namespaces": {
			bindings: []rbacv1.ClusterRoleBinding{newBinding("east",
				rbacv1.Subject{Kind: "ServiceAccount", Namespace: "a", Name: "robot"}, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "b", Name: "robot"})},
			want: impersonation.Subjects{ServiceAccounts: []string{"robot"}},
		},
		"a service account by its user name": {
			bindings: []rbacv1.ClusterRoleBinding{newBinding("east", newSubject("User", "system:serviceaccount:a:robot"), newSubject("User", "system:serviceaccount:robot"))},
			want:     impersonation.Subjects{Users: []string{"system:serviceaccount:robot"}, ServiceAccounts: []string{"robot"}},
		},
		"a role for another cluster":        {bindings: []rbacv1.ClusterRoleBinding{newBinding("west", newSubject("User", "ann"))}},
		"a role without access to clusters": {bindings: []rbacv1.ClusterRoleBinding{newBinding("view", newSubject("User", "ann"))}},
		"a role that does not exist":        {bindings: []rbacv1.ClusterRoleBinding{newBinding("gone", newSubject("User", "ann"))}},
		"a subject of an unknown kind":      {bindings: []rbacv1.ClusterRoleBinding{newBinding("east", newSubject("Robot", "ann"))}},
		"a binding to a Role": {
			bindings: []rbacv1.ClusterRoleBinding{{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "east"}, Subjects: []rbacv1.Subject{newSubject("User", "ann")}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, impersonation.SubjectsOf(roles, test.bindings, "m1")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRoleIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.SliceOfNDistinct(rapid.Custom(generateRole), 0, 6, func(r rbacv1.ClusterRole) string { return r.Name }).Draw(t, "roles")
		bindings := rapid.SliceOfN(rapid.Custom(generateBinding), 0, 8).Draw(t, "bindings")
		want := impersonation.NewRole(impersonation.SubjectsOf(roles, bindings, "m1"), "")
		roles = rapid.Permutation(roles).Draw(t, "other roles")
		bindings = rapid.Permutation(bindings).Draw(t, "other bindings")
		for i := range bindings {
			bindings[i].Subjects = rapid.Permutation(bindings[i].Subjects).Draw(t, "other subjects")
		}
		if diff := cmp.Diff(want, impersonation.NewRole(impersonation.SubjectsOf(roles, bindings, "m1"), "")); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestRoleContainsSubjectsWithAccess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.SliceOfNDistinct(rapid.Custom(generateRole), 0, 6, func(r rbacv1.ClusterRole) string { return r.Name }).Draw(t, "roles")
		bindings := rapid.SliceOfN(rapid.Custom(generateBinding), 0, 8).Draw(t, "bindings")
		want := map[string]bool{}
		for _, b := range bindings {
			at := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Name == b.RoleRef.Name })
			if at < 0 || !impersonation.AllowsCluster(roles[at].Rules, "m1") {
				continue
			}
			for _, s := range b.Subjects {
				want[map[string]string{"User": "users", "Group": "groups", "ServiceAccount": "serviceaccounts"}[s.Kind]+" "+s.Name] = true
			}
		}
		got := map[string]bool{}
		for _, r := range impersonation.NewRole(impersonation.SubjectsOf(roles, bindings, "m1"), "").Rules {
			if len(r.ResourceNames) == 0 || !slices.IsSorted(r.ResourceNames) {
				t.Fatalf("names %v", r.ResourceNames)
			}
			for _, name := range r.ResourceNames {
				if key := r.Resources[0] + " " + name; got[key] {
					t.Fatalf("%s twice", key)
				} else {
					got[key] = true
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func generateRole(t *rapid.T) rbacv1.ClusterRole {
	rules := rapid.SliceOfN(rapid.SampledFrom([]rbacv1.PolicyRule{
		newRule("*", "*"), newRule("", "pods"), newRule("cluster.karmada.io", "clusters/proxy"),
		newRule("cluster.karmada.io", "clusters/proxy", "m1"), newRule("cluster.karmada.io", "clusters/proxy", "m2"),
	}), 0, 3).Draw(t, "rules")
	return newRole(generateName(t, "role"), rules...)
}

func generateBinding(t *rapid.T) rbacv1.ClusterRoleBinding {
	return newBinding(generateName(t, "role"), rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rbacv1.Subject {
		return newSubject(rapid.SampledFrom([]string{"User", "Group", "ServiceAccount"}).Draw(t, "kind"), generateName(t, "subject"))
	}), 0, 5).Draw(t, "subjects")...)
}

func generateName(t *rapid.T, prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, rapid.IntRange(0, 7).Draw(t, prefix))
}
