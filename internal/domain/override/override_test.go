package override

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// labelPolicySpec returns the spec of a policy that sets the label "by" to value. selectors is YAML
// that is added to the spec.
func labelPolicySpec(value, selectors string) string {
	return "overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {by: " + value + "}}]}}]\n" + selectors
}

const (
	selectByKind = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]`
	selectByName = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]`
)

func TestApplyOrder(t *testing.T) {
	tests := map[string]struct {
		cluster, namespaced []Object
		want                string
	}{
		"the OverridePolicy is applied last": {
			cluster:    []Object{newClusterPolicy(t, "a", labelPolicySpec("a", selectByKind)), newClusterPolicy(t, "b", labelPolicySpec("b", selectByName))},
			namespaced: []Object{newNamespacePolicy(t, "shop", "all", labelPolicySpec("op", ""))},
			want:       "op",
		},
		"a selector by name is applied after a selector by kind": {
			cluster: []Object{newClusterPolicy(t, "a", labelPolicySpec("named", selectByName)), newClusterPolicy(t, "z", labelPolicySpec("all", selectByKind))},
			want:    "named",
		},
		"a label selector is applied between kind and name": {
			cluster: []Object{
				newClusterPolicy(t, "z", labelPolicySpec("all", selectByKind)),
				newClusterPolicy(t, "y", labelPolicySpec("labelled", `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {}}]`)),
				newClusterPolicy(t, "x", labelPolicySpec("named", selectByName)),
			},
			want: "named",
		},
		"policies of equal specificity are applied by name": {
			cluster: []Object{newClusterPolicy(t, "b", labelPolicySpec("b", selectByKind)), newClusterPolicy(t, "a", labelPolicySpec("a", selectByKind))},
			want:    "b",
		},
		"no selectors are as specific as a kind": {
			cluster: []Object{newClusterPolicy(t, "z", labelPolicySpec("none", "")), newClusterPolicy(t, "a", labelPolicySpec("all", selectByKind))},
			want:    "none",
		},
		"an OverridePolicy of another namespace is ignored": {
			namespaced: []Object{newNamespacePolicy(t, "other", "all", labelPolicySpec("op", ""))},
		},
		"OverridePolicies select the result of ClusterOverridePolicies": {
			cluster: []Object{newClusterPolicy(t, "mark", `overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {marked: "yes"}}]}}]`)},
			namespaced: []Object{newNamespacePolicy(t, "shop", "marked", labelPolicySpec("op",
				`resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {marked: "yes"}}}]`))},
			want: "op",
		},
		"policies of one scope select the manifest before the scope": {
			cluster: []Object{
				newClusterPolicy(t, "a", `overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {marked: "yes"}}]}}]`),
				newClusterPolicy(t, "b", labelPolicySpec("b", `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {marked: "yes"}}}]`)),
			},
		},
		"a policy for another kind is ignored": {
			cluster: []Object{newClusterPolicy(t, "a", labelPolicySpec("a", `resourceSelectors: [{apiVersion: v1, kind: Pod}]`))},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := Apply(parseObject(t, deploymentYAML), newMember("m1"), tc.cluster, tc.namespaced)
			if err != nil {
				t.Fatal(err)
			}
			if by := got.GetLabels()["by"]; by != tc.want {
				t.Errorf("last written by %q, want %q", by, tc.want)
			}
		})
	}
}

func TestApplyRules(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"rules apply in order": {
			`overrideRules:
- {overriders: {labelsOverrider: [{operator: add, value: {by: first}}]}}
- {overriders: {labelsOverrider: [{operator: add, value: {by: second}}]}}`, "second",
		},
		"a rule for another cluster does not apply": {
			`overrideRules: [{targetCluster: {clusterNames: [m2]}, overriders: {labelsOverrider: [{operator: add, value: {by: rule}}]}}]`, "",
		},
		"an excluded cluster is not selected by its name": {
			`overrideRules: [{targetCluster: {clusterNames: [m1], exclude: [m1]}, overriders: {labelsOverrider: [{operator: add, value: {by: rule}}]}}]`, "",
		},
		"an empty target selects every cluster": {
			`overrideRules: [{targetCluster: {}, overriders: {labelsOverrider: [{operator: add, value: {by: rule}}]}}]`, "rule",
		},
		"a cluster is matched by its labels": {
			`overrideRules: [{targetCluster: {labelSelector: {matchLabels: {env: prod}}}, overriders: {labelsOverrider: [{operator: add, value: {by: rule}}]}}]`, "rule",
		},
		"deprecated overriders are applied without rules": {
			`targetCluster: {clusterNames: [m1]}
overriders: {labelsOverrider: [{operator: add, value: {by: old}}]}`, "old",
		},
		"deprecated overriders are ignored with rules": {
			`overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {by: rule}}]}}]
overriders: {labelsOverrider: [{operator: add, value: {by: old}}]}`, "rule",
		},
		"kinds of overriders apply in their fixed order, plaintext last": {
			`overrideRules: [{overriders: {
  plaintext: [{path: /metadata/labels/by, operator: replace, value: plaintext}],
  labelsOverrider: [{operator: add, value: {by: labels}}]}}]`, "plaintext",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := Apply(parseObject(t, deploymentYAML), newMember("m1"), []Object{newClusterPolicy(t, "p", tc.spec)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if by := got.GetLabels()["by"]; by != tc.want {
				t.Errorf("last written by %q, want %q", by, tc.want)
			}
		})
	}
}

func TestTerminatingPoliciesAreApplied(t *testing.T) {
	source := newClusterPolicy(t, "p", labelPolicySpec("p", ""))
	source.DeletionTimestamp = &metav1.Time{}
	got, _, err := Apply(parseObject(t, deploymentYAML), newMember("m1"), []Object{source}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetLabels()["by"] != "p" {
		t.Error("a policy that is being deleted was not applied")
	}
}

func TestOverridePoliciesIgnoreClusterScopedManifests(t *testing.T) {
	role := parseObject(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}`)
	got, applied, err := Apply(role, newMember("m1"), nil, []Object{newNamespacePolicy(t, "", "odd", labelPolicySpec("op", ""))})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(role, got); diff != "" || applied != (AppliedRecord{}) {
		t.Errorf("changed: %s, record %+v", diff, applied)
	}
}

func TestRecord(t *testing.T) {
	mirror := `overrideRules: [{overriders: {imageOverrider: [{component: Registry, operator: replace, value: reg.local}]}}]`
	two := `overrideRules:
- {overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}
- {targetCluster: {clusterNames: [m2]}, overriders: {labelsOverrider: [{operator: add, value: {c: d}}]}}
- {overriders: {}}
- {overriders: {plaintext: [{path: /spec/replicas, operator: remove}]}}`
	tests := map[string]struct {
		cluster, namespaced []Object
		want                AppliedRecord
	}{
		"no applied rule": {cluster: []Object{newClusterPolicy(t, "none", "overrideRules: [{overriders: {}}]")}},
		"a registry mirror": {
			cluster: []Object{newClusterPolicy(t, "mirror", mirror)},
			want: AppliedRecord{Cluster: `[{"policyName":"mirror","overriders":{"imageOverrider":` +
				`[{"component":"Registry","operator":"replace","value":"reg.local"}]}}]`},
		},
		"one entry for each applied rule, in the order of the rules": {
			namespaced: []Object{newNamespacePolicy(t, "shop", "two", two)},
			want: AppliedRecord{Namespaced: `[{"policyName":"two","overriders":{"labelsOverrider":[{"operator":"add","value":{"a":"b"}}]}},` +
				`{"policyName":"two","overriders":{"plaintext":[{"path":"/spec/replicas","operator":"remove"}]}}]`},
		},
		"sorted by policy name": {
			cluster: []Object{newClusterPolicy(t, "a", labelPolicySpec("x", selectByName)), newClusterPolicy(t, "b", labelPolicySpec("late", selectByKind))},
			want: AppliedRecord{Cluster: `[{"policyName":"a","overriders":{"labelsOverrider":[{"operator":"add","value":{"by":"x"}}]}},` +
				`{"policyName":"b","overriders":{"labelsOverrider":[{"operator":"add","value":{"by":"late"}}]}}]`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, got, err := Apply(parseObject(t, deploymentYAML), newMember("m1"), tc.cluster, tc.namespaced)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRuleErrorNamesPolicyFieldAndRemedy(t *testing.T) {
	spec := `overrideRules:
- {overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}
- overriders:
    plaintext:
    - {path: /spec/paused, operator: add, value: true}
    - {path: /spec/minReadySeconds, operator: replace, value: 5}`
	_, _, err := Apply(parseObject(t, deploymentYAML), newMember("m1"), nil, []Object{newNamespacePolicy(t, "shop", "slow", spec)})
	var failure *RuleError
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a RuleError", err)
	}
	want := &RuleError{
		Policy: `OverridePolicy "shop/slow"`, Rule: 1, Overrider: "plaintext",
		Field: "spec.overrideRules[1].overriders.plaintext[1]", Path: "/spec/minReadySeconds",
		Remedy: `use operator "add", or select only resources that have the field`,
	}
	if diff := cmp.Diff(want, failure, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Err" }, cmp.Ignore())); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if cause := errors.Unwrap(failure); cause == nil || !strings.HasSuffix(cause.Error(), `"/spec/minReadySeconds"`) {
		t.Errorf("cause %v", cause)
	}
	message := `applying OverridePolicy "shop/slow", spec.overrideRules[1].overriders.plaintext[1] at "/spec/minReadySeconds": ` +
		`there is no field "/spec/minReadySeconds"; use operator "add", or select only resources that have the field`
	if err.Error() != message {
		t.Errorf("message:\n got %s\nwant %s", err, message)
	}
}

func TestRemedyOfReplaceSucceeds(t *testing.T) {
	const rest = `or select only resources that have the field`
	tests := map[string]struct {
		entry, remedy, corrected string
	}{
		"a missing field": {
			`{path: /spec/minReadySeconds, operator: replace, value: 5}`,
			`use operator "add", ` + rest, `{path: /spec/minReadySeconds, operator: add, value: 5}`,
		},
		"a field below a missing field": {
			`{path: /spec/strategy/rollingUpdate/maxSurge, operator: replace, value: 1}`,
			`use operator "add" with the object or list around it, ` + rest, `{path: /spec/strategy, operator: add, value: {rollingUpdate: {maxSurge: 1}}}`,
		},
		"a field below a number": {
			`{path: /spec/replicas/least, operator: replace, value: 1}`,
			`use operator "add" with the object or list around it, ` + rest, `{path: /spec/replicas, operator: add, value: {least: 1}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			apply := func(entry string) error {
				source := newNamespacePolicy(t, "shop", "slow", `overrideRules: [{overriders: {plaintext: [`+entry+`]}}]`)
				_, _, err := Apply(parseObject(t, deploymentYAML), newMember("m1"), nil, []Object{source})
				return err
			}
			var failure *RuleError
			if err := apply(tc.entry); !errors.As(err, &failure) || failure.Remedy != tc.remedy {
				t.Errorf("got %v, want the remedy %q", err, tc.remedy)
			}
			if err := apply(tc.corrected); err != nil {
				t.Errorf("the entry of the remedy fails: %v", err)
			}
		})
	}
}

func TestMissingPathFailsOnlyTargetedClusters(t *testing.T) {
	source := newClusterPolicy(t, "p", `overrideRules:
- {targetCluster: {clusterNames: [m2]}, overriders: {plaintext: [{path: /spec/none/x, operator: replace, value: 1}]}}`)
	if _, _, err := Apply(parseObject(t, deploymentYAML), newMember("m1"), []Object{source}, nil); err != nil {
		t.Errorf("m1: %v", err)
	}
	if _, _, err := Apply(parseObject(t, deploymentYAML), newMember("m2"), []Object{source}, nil); err == nil {
		t.Error("m2: no error")
	}
}

// TestApplyIsPure generates policies. It checks that the result does not depend on the order of the
// policies, and that neither the policies nor the manifest change.
func TestApplyIsPure(t *testing.T) {
	pool := []Object{
		newClusterPolicy(t, "a", labelPolicySpec("a", selectByKind)),
		newClusterPolicy(t, "b", labelPolicySpec("b", selectByName)),
		newClusterPolicy(t, "c", `overrideRules: [{overriders: {plaintext: [{path: /spec/template/spec/containers/0/env, operator: add, value: [{name: A, value: {deep: [1]}}]}]}}]`),
		newClusterPolicy(t, "d", `overrideRules: [{overriders: {plaintext: [{path: /spec/template/spec/containers/-, operator: add, value: {name: new, image: "x:1"}}]}}]`),
		newClusterPolicy(t, "e", `overrideRules: [{overriders: {imageOverrider: [{component: Registry, operator: replace, value: reg.local}]}}]`),
		newClusterPolicy(t, "f", `overrideRules: [{overriders: {argsOverrider: [{containerName: web, operator: remove, value: [-a]}]}}]`),
		newClusterPolicy(t, "g", `overrideRules: [{overriders: {plaintext: [{path: /spec/template/spec/containers/0, operator: remove}]}}]`),
	}
	sample := parseObject(t, deploymentYAML)
	rapid.Check(t, func(t *rapid.T) {
		policies := rapid.SliceOfDistinct(rapid.SampledFrom(pool), func(o Object) string { return o.GetName() }).Draw(t, "policies")
		copies := make([]any, len(policies))
		for i, source := range policies {
			copies[i] = source.DeepCopyObject()
		}
		manifest := sample.DeepCopy()
		first, firstRecord, firstErr := Apply(manifest, newMember("m1"), policies, nil)
		reversed := slices.Clone(policies)
		slices.Reverse(reversed)
		second, secondRecord, secondErr := Apply(manifest, newMember("m1"), reversed, nil)
		if diff := cmp.Diff(first, second); diff != "" || firstRecord != secondRecord || (firstErr == nil) != (secondErr == nil) {
			t.Fatalf("the result depends on the order of the policies: %s", diff)
		}
		if diff := cmp.Diff(sample, manifest); diff != "" {
			t.Fatalf("the manifest was changed: %s", diff)
		}
		if first != nil {
			overwriteStrings(first.Object)
		}
		for i, source := range policies {
			if diff := cmp.Diff(copies[i], any(source)); diff != "" {
				t.Fatalf("policy %s was changed: %s", source.GetName(), diff)
			}
		}
		if diff := cmp.Diff(sample, manifest); diff != "" {
			t.Fatalf("the result shares memory with the manifest: %s", diff)
		}
	})
}

// overwriteStrings overwrites every string in a value, so that the test detects memory that the
// value shares with another one.
func overwriteStrings(node any) {
	switch parent := node.(type) {
	case map[string]any:
		for key := range parent {
			overwriteStrings(parent[key])
			if _, leaf := parent[key].(string); leaf {
				parent[key] = "scribbled"
			}
		}
	case []any:
		for i := range parent {
			overwriteStrings(parent[i])
			if _, leaf := parent[i].(string); leaf {
				parent[i] = "scribbled"
			}
		}
	}
}

func TestSpecificity(t *testing.T) {
	manifest := parseObject(t, deploymentYAML)
	if got := Specificity(newClusterPolicy(t, "p", `resourceSelectors: [{apiVersion: v1, kind: Pod}]`), manifest); got != 0 {
		t.Errorf("a policy for Pods has specificity %d for a Deployment", got)
	}
	if got := Specificity(&policyv1alpha1.ClusterOverridePolicy{}, manifest); got != 1 {
		t.Errorf("a policy without selectors has specificity %d, want 1", got)
	}
}

func BenchmarkApply(b *testing.B) {
	policies := []Object{
		newClusterPolicy(b, "mirror", `overrideRules: [{overriders: {imageOverrider: [{component: Registry, operator: replace, value: reg.local}]}}]`),
		newClusterPolicy(b, "args", `overrideRules: [{targetCluster: {clusterNames: [m1]}, overriders: {argsOverrider: [{containerName: web, operator: add, value: [-v]}]}}]`),
	}
	manifest, cluster := parseObject(b, deploymentYAML), newMember("m1")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Apply(manifest, cluster, policies, nil); err != nil {
			b.Fatal(strings.TrimSpace(err.Error()))
		}
	}
}
