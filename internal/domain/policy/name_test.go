package policy

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestGeneratedNamesAreStable checks that generated names never change, because policies with these
// names are stored.
func TestGeneratedNamesAreStable(t *testing.T) {
	if got, want := generatedName("rand", "ns-foo", "foo"), "foo-b4978784"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	if got, want := GeneratedName(deployment, "default", "nginx"), "nginx-6d7f8d5f5b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	if got, want := GeneratedName(role, "", "system:Foo"), generatedName("rbac.authorization.k8s.io/v1, Kind=ClusterRole", "", "system.foo"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
