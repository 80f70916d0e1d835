package tenancy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &made.Object); err != nil {
		t.Fatal(err)
	}
	return made
}

func TestViolations(t *testing.T) {
	template := `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}}`
	tests := map[string]struct {
		manifest string
		want     []IdentityError
	}{
		"the same":         {template, nil},
		"another version":  {`{apiVersion: apps/v2, kind: Deployment, metadata: {namespace: shop, name: web}}`, nil},
		"another group":    {`{apiVersion: example.io/v1, kind: Deployment, metadata: {namespace: shop, name: web}}`, []IdentityError{{"/apiVersion", "API group", "apps", "example.io"}}},
		"no group":         {`{apiVersion: v1, kind: Deployment, metadata: {namespace: shop, name: web}}`, []IdentityError{{"/apiVersion", "API group", "apps", ""}}},
		"another kind":     {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: shop, name: web}}`, []IdentityError{{"/kind", "kind", "Deployment", "DaemonSet"}}},
		"another name":     {`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: db}}`, []IdentityError{{"/metadata/name", "name", "web", "db"}}},
		"no namespace":     {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`, []IdentityError{{"/metadata/namespace", "namespace", "shop", ""}}},
		"another object":   {`{apiVersion: v1, kind: Namespace, metadata: {name: x}}`, []IdentityError{{"/apiVersion", "API group", "apps", ""}, {"/kind", "kind", "Deployment", "Namespace"}, {"/metadata/namespace", "namespace", "shop", ""}, {"/metadata/name", "name", "web", "x"}}},
		"invalid metadata": {`{apiVersion: apps/v1, kind: Deployment, metadata: text}`, []IdentityError{{"/metadata/namespace", "namespace", "shop", ""}, {"/metadata/name", "name", "web", ""}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, IdentityOf(parseObject(t, template)).Violations(IdentityOf(parseObject(t, tc.manifest)))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
	if got := (IdentityError{"/kind", "kind", "A", "B"}).Error(); got != `the kind must stay "A", and is "B"` {
		t.Errorf("Error = %q", got)
	}
}

func TestFirstChangedField(t *testing.T) {
	tests := map[string]struct{ before, after, want string }{
		"nothing":                 {`{kind: Role, rules: [a]}`, `{kind: Role, rules: [a]}`, ""},
		"metadata and version":    {`{apiVersion: v1, metadata: {name: a}}`, `{apiVersion: v2, metadata: {name: a, labels: {a: b}}}`, ""},
		"a field":                 {`{rules: [a]}`, `{rules: [a, b]}`, "/rules"},
		"a field that is new":     {`{kind: RoleBinding}`, `{kind: RoleBinding, subjects: [a]}`, "/subjects"},
		"a field that is removed": {`{spec: {hard: {pods: 1}}}`, `{}`, "/spec"},
		"the first field by name": {`{b: 1, a: 1}`, `{b: 2, a: 2}`, "/a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, changed := FirstChangedField(parseObject(t, tc.before), parseObject(t, tc.after)); got != tc.want || changed != (tc.want != "") {
				t.Errorf("got %q, %v, want %q", got, changed, tc.want)
			}
		})
	}
}

func TestGrantsRights(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	for kind, want := range map[schema.GroupKind]bool{
		{Group: rbac, Kind: "Role"}: true, {Group: rbac, Kind: "RoleBinding"}: true, {Kind: "ResourceQuota"}: true, {Kind: "LimitRange"}: true,
		{Kind: "Endpoints"}: true, {Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true,
		{Kind: "EndpointSlice"}: false, {Kind: "Service"}: false,
		{Kind: "Role"}: false, {Kind: "ConfigMap"}: false, {Group: "apps", Kind: "Deployment"}: false,
	} {
		if GrantsRights(kind) != want {
			t.Errorf("%s: %v", kind, !want)
		}
	}
}
