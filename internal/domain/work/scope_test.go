package work

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestValidateScope(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace  string
		namespaced bool
		want       string
	}{
		"namespaced manifest, namespaced kind":         {"shop", true, ""},
		"cluster-scoped manifest, cluster-scoped kind": {"", false, ""},
		"namespaced manifest, cluster-scoped kind":     {"shop", false, "Widget shop/x was not sent to cluster east: the object has scope Namespaced, and the cluster serves kind Widget of group \"example.io\" with scope Cluster"},
		"cluster-scoped manifest, namespaced kind":     {"", true, "Widget x was not sent to cluster east: the object has scope Cluster, and the cluster serves kind Widget of group \"example.io\" with scope Namespaced"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.io/v1", "kind": "Widget"}}
			manifest.SetNamespace(tc.namespace)
			manifest.SetName("x")
			err := ValidateScope("east", manifest, tc.namespaced)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
