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

func rule(group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
}

func role(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func bind(role string, subjects ...rbacv1.Subject) rbacv1.ClusterRoleBinding {
	return rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: subjects}
}

func subject(kind, name string) rbacv1.Subject { return rbacv1.Subject{Kind: kind, Name: name} }

func TestRulesThatOpenTheWayToACluster(t *testing.T) {
	tests := map[string]struct {
		rules            []rbacv1.PolicyRule
		reaches, touches bool
	}{
		"the proxy of all clusters":                        {[]rbacv1.PolicyRule{rule("cluster.karmada.io", "clusters/proxy")}, true, true},
		"the proxy of this cluster":                        {[]rbacv1.PolicyRule{rule("cluster.karmada.io", "clusters/proxy", "m2", "m1")}, true, true},
		"not the proxy of another cluster":                 {[]rbacv1.PolicyRule{rule("cluster.karmada.io", "clusters/proxy", "m2")}, false, true},
		"the proxy of all clusters by its name":            {[]rbacv1.PolicyRule{rule("cluster.karmada.io", "clusters/proxy", "*")}, true, true},
		"any resource of the group":                        {[]rbacv1.PolicyRule{rule("cluster.karmada.io", "*")}, true, true},
		"any resource of the group, under another name":    {[]rbacv1.PolicyRule{rule("cluster.karmada.io", "*", "m2")}, false, true},
		"the proxy in any group":                           {[]rbacv1.PolicyRule{rule("*", "clusters/proxy")}, true, true},
		"the proxies of all resources":                     {[]rbacv1.PolicyRule{rule("*", "*/proxy")}, true, true},
		"everything, as administrators have it":            {[]rbacv1.PolicyRule{rule("*", "*")}, true, true},
		"the proxy of search":                              {[]rbacv1.PolicyRule{rule("search.karmada.io", "proxying/proxy")}, true, true},
		"the proxy of search, whatever names are given":    {[]rbacv1.PolicyRule{rule("search.karmada.io", "proxying/proxy", "m2")}, true, true},
		"any resource of search":                           {[]rbacv1.PolicyRule{rule("search.karmada.io", "*")}, true, true},
		"one rule among others":                            {[]rbacv1.PolicyRule{rule("", "pods"), rule("cluster.karmada.io", "clusters/proxy")}, true, true},
		"one group and one resource among others":          {[]rbacv1.PolicyRule{{APIGroups: []string{"", "cluster.karmada.io"}, Resources: []string{"clusters", "clusters/proxy"}}}, true, true},
		"not clusters without their proxy":                 {[]rbacv1.PolicyRule{rule("cluster.karmada.io", "clusters")}, false, false},
		"not what is called alike in another group":        {[]rbacv1.PolicyRule{rule("", "clusters/proxy")}, false, false},
		"not the resource of one group with that of other": {[]rbacv1.PolicyRule{rule("search.karmada.io", "clusters/proxy"), rule("cluster.karmada.io", "proxying/proxy")}, false, false},
		"not group and resource of different rules":        {[]rbacv1.PolicyRule{rule("cluster.karmada.io", "clusters"), rule("", "*")}, false, false},
		"not paths": {[]rbacv1.PolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}, false, false},
		"nothing":   {nil, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := impersonation.Reaches(test.rules, "m1"); got != test.reaches {
				t.Errorf("reaches m1: %v", got)
			}
			if got := impersonation.Concerns(test.rules); got != test.touches {
				t.Errorf("concerns any cluster: %v", got)
			}
		})
	}
}

func TestSubjectsOf(t *testing.T) {
	roles := []rbacv1.ClusterRole{
		role("east", rule("cluster.karmada.io", "clusters/proxy", "m1")),
		role("west", rule("cluster.karmada.io", "clusters/proxy", "m2")),
		role("cluster-admin", rule("*", "*")),
		role("view", rule("", "pods")),
	}
	tests := map[string]struct {
		bindings []rbacv1.ClusterRoleBinding
		want     impersonation.Subjects
	}{
		"nobody without bindings": {},
		"each kind of subject in its place": {
			bindings: []rbacv1.ClusterRoleBinding{bind("east", subject("User", "ann"), subject("Group", "dev"), subject("ServiceAccount", "robot"))},
			want:     impersonation.Subjects{Users: []string{"ann"}, ServiceAccounts: []string{"robot"}, Groups: []string{"dev"}},
		},
		"the group of administrators": {
			bindings: []rbacv1.ClusterRoleBinding{bind("cluster-admin", subject("Group", "system:masters"))},
			want:     impersonation.Subjects{Groups: []string{"system:masters"}},
		},
		"sorted, and once each": {
			bindings: []rbacv1.ClusterRoleBinding{
				bind("east", subject("User", "cid"), subject("User", "ann")),
				bind("cluster-admin", subject("User", "bob"), subject("User", "ann")),
			},
			want: impersonation.Subjects{Users: []string{"ann", "bob", "cid"}},
		},
		"a service account once, of however many namespaces": {
			bindings: []rbacv1.ClusterRoleBinding{bind("east",
				rbacv1.Subject{Kind: "ServiceAccount", Namespace: "a", Name: "robot"}, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "b", Name: "robot"})},
			want: impersonation.Subjects{ServiceAccounts: []string{"robot"}},
		},
		"a service account by its user name": {
			bindings: []rbacv1.ClusterRoleBinding{bind("east", subject("User", "system:serviceaccount:a:robot"), subject("User", "system:serviceaccount:robot"))},
			want:     impersonation.Subjects{Users: []string{"system:serviceaccount:robot"}, ServiceAccounts: []string{"robot"}},
		},
		"nobody of another cluster":         {bindings: []rbacv1.ClusterRoleBinding{bind("west", subject("User", "ann"))}},
		"nobody of a role without the rule": {bindings: []rbacv1.ClusterRoleBinding{bind("view", subject("User", "ann"))}},
		"nobody of a role that is gone":     {bindings: []rbacv1.ClusterRoleBinding{bind("gone", subject("User", "ann"))}},
		"nobody of an unknown kind":         {bindings: []rbacv1.ClusterRoleBinding{bind("east", subject("Robot", "ann"))}},
		"nobody bound to another kind of role": {
			bindings: []rbacv1.ClusterRoleBinding{{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "east"}, Subjects: []rbacv1.Subject{subject("User", "ann")}}},
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

func TestTheOrderOfObjectsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.SliceOfNDistinct(rapid.Custom(drawRole), 0, 6, func(r rbacv1.ClusterRole) string { return r.Name }).Draw(t, "roles")
		bindings := rapid.SliceOfN(rapid.Custom(drawBinding), 0, 8).Draw(t, "bindings")
		want := impersonation.Role(impersonation.SubjectsOf(roles, bindings, "m1"))
		roles = rapid.Permutation(roles).Draw(t, "other roles")
		bindings = rapid.Permutation(bindings).Draw(t, "other bindings")
		for i := range bindings {
			bindings[i].Subjects = rapid.Permutation(bindings[i].Subjects).Draw(t, "other subjects")
		}
		if diff := cmp.Diff(want, impersonation.Role(impersonation.SubjectsOf(roles, bindings, "m1"))); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestARoleListsExactlyTheSubjectsThatReachTheCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.SliceOfNDistinct(rapid.Custom(drawRole), 0, 6, func(r rbacv1.ClusterRole) string { return r.Name }).Draw(t, "roles")
		bindings := rapid.SliceOfN(rapid.Custom(drawBinding), 0, 8).Draw(t, "bindings")
		want := map[string]bool{}
		for _, b := range bindings {
			at := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Name == b.RoleRef.Name })
			if at < 0 || !impersonation.Reaches(roles[at].Rules, "m1") {
				continue
			}
			for _, s := range b.Subjects {
				want[map[string]string{"User": "users", "Group": "groups", "ServiceAccount": "serviceaccounts"}[s.Kind]+" "+s.Name] = true
			}
		}
		got := map[string]bool{}
		for _, r := range impersonation.Role(impersonation.SubjectsOf(roles, bindings, "m1")).Rules {
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

func drawRole(t *rapid.T) rbacv1.ClusterRole {
	rules := rapid.SliceOfN(rapid.SampledFrom([]rbacv1.PolicyRule{
		rule("*", "*"), rule("", "pods"), rule("cluster.karmada.io", "clusters/proxy"),
		rule("cluster.karmada.io", "clusters/proxy", "m1"), rule("cluster.karmada.io", "clusters/proxy", "m2"),
	}), 0, 3).Draw(t, "rules")
	return role(drawName(t, "role"), rules...)
}

func drawBinding(t *rapid.T) rbacv1.ClusterRoleBinding {
	return bind(drawName(t, "role"), rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rbacv1.Subject {
		return subject(rapid.SampledFrom([]string{"User", "Group", "ServiceAccount"}).Draw(t, "kind"), drawName(t, "subject"))
	}), 0, 5).Draw(t, "subjects")...)
}

func drawName(t *rapid.T, prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, rapid.IntRange(0, 7).Draw(t, prefix))
}
