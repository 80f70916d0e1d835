package binding

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestWithSuffix(t *testing.T) {
	long := strings.Repeat("a", 250)
	tests := map[string]struct{ name, suffix, want string }{
		"a valid name":              {"nginx", "Deployment", "nginx-deployment"},
		"a colon":                   {"system:foo", "ClusterRole", "system.foo-clusterrole"},
		"capital letters":           {"View", "ClusterRole", "view-clusterrole"},
		"two colons":                {"a::b", "ClusterRole", "a--b-HASH-clusterrole"},
		"an underscore":             {"a_b", "ClusterRole", "a-b-HASH-clusterrole"},
		"a leading colon":           {":view", "ClusterRole", "view-HASH-clusterrole"},
		"a trailing colon":          {"view:", "ClusterRole", "view-HASH-clusterrole"},
		"only characters like that": {"::", "ClusterRole", "HASH-clusterrole"},
		"other letters":             {"größe", "ClusterRole", "gr--e-HASH-clusterrole"},
		"a name that is too long":   {long, "Deployment", strings.Repeat("a", 253-len("--deployment")-len(ShortHash(long))) + "-HASH-deployment"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := strings.ReplaceAll(test.want, "HASH", ShortHash(test.name))
			if got := NameWithSuffix(test.name, test.suffix); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Every name gives a valid name, and names that are not valid have no name in common with others.
func TestWithSuffixIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string { return rapid.StringMatching(`[a-zA-Z0-9:_. -]{1,260}`).Draw(t, label) }
		first, second := draw("first"), draw("second")
		got := NameWithSuffix(first, "ClusterRole")
		if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 {
			t.Fatalf("%q: %v", got, problems)
		}
		if problems := validation.IsDNS1123Subdomain(UnambiguousName(got, first)); len(problems) > 0 {
			t.Fatalf("%q: %v", UnambiguousName(got, first), problems)
		}
		if unambiguous := UnambiguousName(got, first); unambiguous == got || unambiguous == NameWithSuffix(second, "ClusterRole") {
			t.Fatalf("%q has the name %q of another object", first, unambiguous)
		}
		isPlain := got == strings.ToLower(strings.ReplaceAll(first, ":", "."))+"-clusterrole"
		if first != second && !isPlain && got == NameWithSuffix(second, "ClusterRole") {
			t.Fatalf("%q and %q both give %q", first, second, got)
		}
	})
}
