package override

import (
	"errors"
	"strings"
	"testing"
)

// TestOverrideKeepsObjectIdentity applies each rule to the Deployment shop/web, both in an
// OverridePolicy and in a ClusterOverridePolicy.
func TestOverrideKeepsObjectIdentity(t *testing.T) {
	const clusterAdmin = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: mallory}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}`
	tests := map[string]struct{ rule, path, field string }{
		"the whole object":             {`plaintext: [{path: "", operator: replace, value: ` + clusterAdmin + `}]`, "/apiVersion", "plaintext[0]"},
		"the group":                    {`plaintext: [{path: /apiVersion, operator: replace, value: example.io/v1}]`, "/apiVersion", "plaintext[0]"},
		"the kind":                     {`plaintext: [{path: /spec/replicas, operator: replace, value: 1}, {path: /kind, operator: replace, value: DaemonSet}]`, "/kind", "plaintext[1]"},
		"the namespace":                {`plaintext: [{path: /metadata/namespace, operator: replace, value: kube-system}]`, "/metadata/namespace", "plaintext[0]"},
		"the namespace is removed":     {`plaintext: [{path: /metadata/namespace, operator: remove}]`, "/metadata/namespace", "plaintext[0]"},
		"metadata without a namespace": {`plaintext: [{path: /metadata, operator: replace, value: {name: web}}]`, "/metadata/namespace", "plaintext[0]"},
		"the name, by imageOverrider":  {`imageOverrider: [{component: Repository, operator: replace, value: db, predicate: {path: /metadata/name}}]`, "/metadata/name", "imageOverrider[0]"},
		"the name, by fieldOverrider":  {`fieldOverrider: [{fieldPath: /metadata/name, yaml: [{subPath: "", operator: replace, value: db}]}]`, "/metadata/name", "fieldOverrider[0]"},
		"the name, with an escape":     {`plaintext: [{path: /metadata/name, operator: add, value: "web~1x"}]`, "/metadata/name", "plaintext[0]"},
		"metadata with another name":   {`plaintext: [{path: /metadata, operator: add, value: {name: db, namespace: shop}}]`, "/metadata/name", "plaintext[0]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := "overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}, {overriders: {" + tc.rule + "}}]"
			for _, policies := range [][2][]Object{
				{nil, {newNamespacePolicy(t, "shop", "p", spec)}},
				{{newClusterPolicy(t, "p", spec)}, nil},
			} {
				_, _, err := Apply(parseObject(t, deploymentYAML), newMember("m1"), policies[0], policies[1])
				var failure *RuleError
				if !errors.As(err, &failure) {
					t.Fatalf("got %v, want a RuleError", err)
				}
				if failure.Path != tc.path || failure.Field != "spec.overrideRules[1].overriders."+tc.field || failure.Remedy == "" || !strings.HasSuffix(failure.Policy, `p"`) {
					t.Errorf("error = %q", err)
				}
			}
			_, _, err := Options{AllowIdentityChange: true}.Apply(parseObject(t, deploymentYAML), newMember("m1"), []Object{newClusterPolicy(t, "p", spec)}, nil)
			if err != nil {
				t.Errorf("a ClusterOverridePolicy with the feature gate enabled fails: %v", err)
			}
			_, _, err = Options{AllowIdentityChange: true}.Apply(parseObject(t, deploymentYAML), newMember("m1"), nil, []Object{newNamespacePolicy(t, "shop", "p", spec)})
			if err == nil {
				t.Error("an OverridePolicy with the feature gate enabled is applied")
			}
		})
	}
}

func TestOverrideMayChangeVersionAndRevertChanges(t *testing.T) {
	for name, rule := range map[string]string{
		"the version within the group":     `plaintext: [{path: /apiVersion, operator: replace, value: apps/v1beta2}]`,
		"the name is changed and reverted": `plaintext: [{path: /metadata/name, operator: replace, value: x}, {path: /metadata/name, operator: replace, value: web}]`,
		"metadata with the same identity":  `plaintext: [{path: /metadata, operator: replace, value: {name: web, namespace: shop, labels: {a: b}}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := applyOverriders(t, parseObject(t, deploymentYAML), rule); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOverridePolicyCannotChangePermissions(t *testing.T) {
	const binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: shop, name: readers}, roleRef: {kind: ClusterRole, name: view}}`
	const quota = `{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: shop, name: q}, spec: {hard: {pods: "1"}}}`
	const slice = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: shop, name: s}, endpoints: [{addresses: [10.0.0.1]}]}`
	tests := map[string]struct{ object, rule, path string }{
		"a route of traffic":        {slice, `{path: /endpoints/0/addresses/0, operator: replace, value: 10.0.0.2}`, "/endpoints"},
		"subjects of a RoleBinding": {binding, `{path: /subjects, operator: add, value: [{kind: User, name: mallory}]}`, "/subjects"},
		"the role of a RoleBinding": {binding, `{path: /roleRef/name, operator: replace, value: cluster-admin}`, "/roleRef"},
		"a quota":                   {quota, `{path: /spec/hard/pods, operator: replace, value: "100"}`, "/spec"},
		"a label":                   {binding, `{path: /metadata/labels, operator: add, value: {a: b}}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := "overrideRules: [{overriders: {plaintext: [" + tc.rule + "]}}]"
			_, _, err := Apply(parseObject(t, tc.object), newMember("m1"), nil, []Object{newNamespacePolicy(t, "shop", "p", spec)})
			var failure *RuleError
			if errors.As(err, &failure) != (tc.path != "") || failure != nil && failure.Path != tc.path {
				t.Errorf("got %v, want a failure at %q", err, tc.path)
			}
			if _, _, err := Apply(parseObject(t, tc.object), newMember("m1"), []Object{newClusterPolicy(t, "p", spec)}, nil); err != nil {
				t.Errorf("a ClusterOverridePolicy fails: %v", err)
			}
		})
	}
}
