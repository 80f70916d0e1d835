package work

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestName(t *testing.T) {
	tests := map[string]struct{ kind, name, namespace, want string }{
		"a Deployment":                         {"Deployment", "nginx", "default", "nginx-687f7fb96f"},
		"a Namespace":                          {"Namespace", "foo", "", "foo-5dbdc7b59c"},
		"the Namespace default":                {"Namespace", "default", "", "default-5b5ccb595b"},
		"the impersonation role":               {"ClusterRole", "karmada-impersonator", "", "karmada-impersonator-7cbb6bd5c9"},
		"the impersonation role binding":       {"ClusterRoleBinding", "karmada-impersonator", "", "karmada-impersonator-84f8c8f8c6"},
		"colons become dots, upper case lower": {"ClusterRole", "system:foo:Bar", "", "system.foo.bar-5964d7bd5d"},
		"a system role":                        {"ClusterRole", "system:foo:viewer", "", "system.foo.viewer-575d7bbbb9"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Name(tc.kind, tc.namespace, tc.name); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNamesAreUnambiguous(t *testing.T) {
	of := func(group, namespace, name string) [2]string {
		return Names(schema.GroupKind{Group: group, Kind: "Role"}, namespace, name)
	}
	all := [][2]string{of("a.io", "shop", "a:view"), of("a.io", "shop", "a.view"), of("a.io", "shop", "A.view"), of("b.io", "shop", "a.view")}
	seen := map[string]bool{}
	for _, names := range all {
		if names[0] != all[0][0] || names[0] != Name("Role", "shop", "a.view") {
			t.Errorf("the usual name is %s, not %s", names[0], all[0][0])
		}
		if seen[names[1]] || validation.IsDNS1123Subdomain(names[1]) != nil {
			t.Errorf("the second name %s is invalid or belongs to two objects", names[1])
		}
		seen[names[1]] = true
	}
}

// FuzzName checks that every valid object has a valid Work name, provided that the object's name is
// short enough to append the hash.
func FuzzName(f *testing.F) {
	f.Add("ClusterRole", "", "system:foo:Bar")
	f.Add("Deployment", "default", "nginx")
	f.Fuzz(func(t *testing.T, kind, namespace, name string) {
		got := Name(kind, namespace, name)
		if got != strings.ToLower(got) || strings.Contains(got, ":") {
			t.Errorf("%q has upper case or colons", got)
		}
		if validation.IsDNS1123Subdomain(name) == nil && len(name) <= 240 && validation.IsDNS1123Subdomain(got) != nil {
			t.Errorf("%q gives the invalid name %q", name, got)
		}
		// Some non-ASCII letters change if they are converted to another case and back. Kinds contain
		// only ASCII letters.
		if isASCII(kind) && got != Name(strings.ToUpper(kind), namespace, name) {
			t.Errorf("the case of the kind %q matters", kind)
		}
	})
}

func TestExecutionNamespace(t *testing.T) {
	if got := ExecutionNamespace("m1"); got != "karmada-es-m1" {
		t.Errorf("got %q", got)
	}
	if cluster, ok := ClusterOf("karmada-es-m1"); cluster != "m1" || !ok {
		t.Errorf("got %q, %v", cluster, ok)
	}
	for _, other := range []string{"default", "karmada-es-", "karmada-esm1"} {
		if cluster, ok := ClusterOf(other); ok {
			t.Errorf("%q is taken for the namespace of %q", other, cluster)
		}
	}
}

func isASCII(s string) bool {
	for _, r := range s {
		if r > 127 {
			return false
		}
	}
	return true
}
