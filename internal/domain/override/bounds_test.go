package override

import (
	"errors"
	"strings"
	"testing"
)

// TestAnOverrideMakesNoOtherObject overrides Deployment shop/web, by a policy of its
// namespace and by one of the cluster.
func TestAnOverrideMakesNoOtherObject(t *testing.T) {
	const clusterAdmin = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: mallory}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}`
	tests := map[string]struct{ rule, path, field string }{
		"by replacing all of it":        {`plaintext: [{path: "", operator: replace, value: ` + clusterAdmin + `}]`, "/apiVersion", "plaintext[0]"},
		"by another group":              {`plaintext: [{path: /apiVersion, operator: replace, value: example.io/v1}]`, "/apiVersion", "plaintext[0]"},
		"by another kind":               {`plaintext: [{path: /spec/replicas, operator: replace, value: 1}, {path: /kind, operator: replace, value: DaemonSet}]`, "/kind", "plaintext[1]"},
		"by another namespace":          {`plaintext: [{path: /metadata/namespace, operator: replace, value: kube-system}]`, "/metadata/namespace", "plaintext[0]"},
		"by no namespace":               {`plaintext: [{path: /metadata/namespace, operator: remove}]`, "/metadata/namespace", "plaintext[0]"},
		"by other metadata":             {`plaintext: [{path: /metadata, operator: replace, value: {name: web}}]`, "/metadata/namespace", "plaintext[0]"},
		"by an image that is its name":  {`imageOverrider: [{component: Repository, operator: replace, value: db, predicate: {path: /metadata/name}}]`, "/metadata/name", "imageOverrider[0]"},
		"by a document that is a name":  {`fieldOverrider: [{fieldPath: /metadata/name, yaml: [{subPath: "", operator: replace, value: db}]}]`, "/metadata/name", "fieldOverrider[0]"},
		"by an escaped path":            {`plaintext: [{path: /metadata/name, operator: add, value: "web~1x"}]`, "/metadata/name", "plaintext[0]"},
		"by metadata under another key": {`plaintext: [{path: /metadata, operator: add, value: {name: db, namespace: shop}}]`, "/metadata/name", "plaintext[0]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := "overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}, {overriders: {" + tc.rule + "}}]"
			for _, policies := range [][2][]Object{
				{nil, {namespacePolicy(t, "shop", "p", spec)}},
				{{clusterPolicy(t, "p", spec)}, nil},
			} {
				_, _, err := Apply(object(t, deployment), member("m1"), policies[0], policies[1])
				var failure *RuleError
				if !errors.As(err, &failure) {
					t.Fatalf("got %v, want a RuleError", err)
				}
				if failure.Path != tc.path || failure.Field != "spec.overrideRules[1].overriders."+tc.field || failure.Remedy == "" || !strings.HasSuffix(failure.Policy, `p"`) {
					t.Errorf("it says %q", err)
				}
			}
			_, _, err := Allowed{Identity: true}.Apply(object(t, deployment), member("m1"), []Object{clusterPolicy(t, "p", spec)}, nil)
			if err != nil {
				t.Errorf("with the gate, a ClusterOverridePolicy fails: %v", err)
			}
			_, _, err = Allowed{Identity: true}.Apply(object(t, deployment), member("m1"), nil, []Object{namespacePolicy(t, "shop", "p", spec)})
			if err == nil {
				t.Error("with the gate, an OverridePolicy may do the same")
			}
		})
	}
}

func TestAnOverrideMayChangeTheVersionAndUndoWhatItDid(t *testing.T) {
	for name, rule := range map[string]string{
		"the version within the group":   `plaintext: [{path: /apiVersion, operator: replace, value: apps/v1beta2}]`,
		"the name, and back":             `plaintext: [{path: /metadata/name, operator: replace, value: x}, {path: /metadata/name, operator: replace, value: web}]`,
		"all metadata but what names it": `plaintext: [{path: /metadata, operator: replace, value: {name: web, namespace: shop, labels: {a: b}}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := one(t, object(t, deployment), rule); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnOverridePolicyChangesNoRights(t *testing.T) {
	const binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: shop, name: readers}, roleRef: {kind: ClusterRole, name: view}}`
	const quota = `{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: shop, name: q}, spec: {hard: {pods: "1"}}}`
	const slice = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: shop, name: s}, endpoints: [{addresses: [10.0.0.1]}]}`
	tests := map[string]struct{ object, rule, path string }{
		"where traffic goes":   {slice, `{path: /endpoints/0/addresses/0, operator: replace, value: 10.0.0.2}`, "/endpoints"},
		"who may do something": {binding, `{path: /subjects, operator: add, value: [{kind: User, name: mallory}]}`, "/subjects"},
		"what they may do":     {binding, `{path: /roleRef/name, operator: replace, value: cluster-admin}`, "/roleRef"},
		"a quota":              {quota, `{path: /spec/hard/pods, operator: replace, value: "100"}`, "/spec"},
		"a label":              {binding, `{path: /metadata/labels, operator: add, value: {a: b}}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := "overrideRules: [{overriders: {plaintext: [" + tc.rule + "]}}]"
			_, _, err := Apply(object(t, tc.object), member("m1"), nil, []Object{namespacePolicy(t, "shop", "p", spec)})
			var failure *RuleError
			if errors.As(err, &failure) != (tc.path != "") || failure != nil && failure.Path != tc.path {
				t.Errorf("got %v, want a failure at %q", err, tc.path)
			}
			if _, _, err := Apply(object(t, tc.object), member("m1"), []Object{clusterPolicy(t, "p", spec)}, nil); err != nil {
				t.Errorf("a ClusterOverridePolicy fails: %v", err)
			}
		})
	}
}
