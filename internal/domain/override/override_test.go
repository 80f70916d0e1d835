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

// label is the spec of a policy that sets the label "by" to value; when says more
// about the policy.
func label(value, when string) string {
	return "overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {by: " + value + "}}]}}]\n" + when
}

const (
	byKind = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]`
	byName = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]`
)

func TestApplyOrder(t *testing.T) {
	tests := map[string]struct {
		cluster, namespaced []Object
		want                string
	}{
		"the OverridePolicy has the last word": {
			cluster:    []Object{clusterPolicy(t, "a", label("a", byKind)), clusterPolicy(t, "b", label("b", byName))},
			namespaced: []Object{namespacePolicy(t, "shop", "all", label("op", ""))},
			want:       "op",
		},
		"by name beats match all, whatever the policies are called": {
			cluster: []Object{clusterPolicy(t, "a", label("named", byName)), clusterPolicy(t, "z", label("all", byKind))},
			want:    "named",
		},
		"a label selector beats match all and loses to a name": {
			cluster: []Object{
				clusterPolicy(t, "z", label("all", byKind)),
				clusterPolicy(t, "y", label("labelled", `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {}}]`)),
				clusterPolicy(t, "x", label("named", byName)),
			},
			want: "named",
		},
		"among equals the later name wins": {
			cluster: []Object{clusterPolicy(t, "b", label("b", byKind)), clusterPolicy(t, "a", label("a", byKind))},
			want:    "b",
		},
		"no selectors rank as low as match all": {
			cluster: []Object{clusterPolicy(t, "z", label("none", "")), clusterPolicy(t, "a", label("all", byKind))},
			want:    "none",
		},
		"an OverridePolicy of another namespace does not count": {
			namespaced: []Object{namespacePolicy(t, "other", "all", label("op", ""))},
		},
		"OverridePolicies see what ClusterOverridePolicies made": {
			cluster: []Object{clusterPolicy(t, "mark", `overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {marked: "yes"}}]}}]`)},
			namespaced: []Object{namespacePolicy(t, "shop", "marked", label("op",
				`resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {marked: "yes"}}}]`))},
			want: "op",
		},
		"a group is selected by what the manifest is before it": {
			cluster: []Object{
				clusterPolicy(t, "a", `overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {marked: "yes"}}]}}]`),
				clusterPolicy(t, "b", label("b", `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {marked: "yes"}}}]`)),
			},
		},
		"a policy of another kind does not count": {
			cluster: []Object{clusterPolicy(t, "a", label("a", `resourceSelectors: [{apiVersion: v1, kind: Pod}]`))},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := Apply(object(t, deployment), member("m1"), tc.cluster, tc.namespaced)
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
		"an excluded cluster is left out even when named": {
			`overrideRules: [{targetCluster: {clusterNames: [m1], exclude: [m1]}, overriders: {labelsOverrider: [{operator: add, value: {by: rule}}]}}]`, "",
		},
		"an empty target is every cluster": {
			`overrideRules: [{targetCluster: {}, overriders: {labelsOverrider: [{operator: add, value: {by: rule}}]}}]`, "rule",
		},
		"a cluster is matched by its labels": {
			`overrideRules: [{targetCluster: {labelSelector: {matchLabels: {env: prod}}}, overriders: {labelsOverrider: [{operator: add, value: {by: rule}}]}}]`, "rule",
		},
		"without rules the deprecated overriders count": {
			`targetCluster: {clusterNames: [m1]}
overriders: {labelsOverrider: [{operator: add, value: {by: old}}]}`, "old",
		},
		"with rules the deprecated overriders do not count": {
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
			got, _, err := Apply(object(t, deployment), member("m1"), []Object{clusterPolicy(t, "p", tc.spec)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if by := got.GetLabels()["by"]; by != tc.want {
				t.Errorf("last written by %q, want %q", by, tc.want)
			}
		})
	}
}

func TestTerminatingPoliciesStillCount(t *testing.T) {
	source := clusterPolicy(t, "p", label("p", ""))
	source.DeletionTimestamp = &metav1.Time{}
	got, _, err := Apply(object(t, deployment), member("m1"), []Object{source}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetLabels()["by"] != "p" {
		t.Error("a policy in deletion was left out")
	}
}

func TestOverridePoliciesDoNotReachClusterScopedManifests(t *testing.T) {
	role := object(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}`)
	got, applied, err := Apply(role, member("m1"), nil, []Object{namespacePolicy(t, "", "odd", label("op", ""))})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(role, got); diff != "" || applied != (Applied{}) {
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
		want                Applied
	}{
		"nothing applied leaves no record": {cluster: []Object{clusterPolicy(t, "none", "overrideRules: [{overriders: {}}]")}},
		"a registry mirror": {
			cluster: []Object{clusterPolicy(t, "mirror", mirror)},
			want: Applied{Cluster: `[{"policyName":"mirror","overriders":{"imageOverrider":` +
				`[{"component":"Registry","operator":"replace","value":"reg.local"}]}}]`},
		},
		"one entry for each applied rule, in the order of the rules": {
			namespaced: []Object{namespacePolicy(t, "shop", "two", two)},
			want: Applied{Namespaced: `[{"policyName":"two","overriders":{"labelsOverrider":[{"operator":"add","value":{"a":"b"}}]}},` +
				`{"policyName":"two","overriders":{"plaintext":[{"path":"/spec/replicas","operator":"remove"}]}}]`},
		},
		"by policy name, not in the order of application": {
			cluster: []Object{clusterPolicy(t, "a", label("x", byName)), clusterPolicy(t, "b", label("late", byKind))},
			want: Applied{Cluster: `[{"policyName":"a","overriders":{"labelsOverrider":[{"operator":"add","value":{"by":"x"}}]}},` +
				`{"policyName":"b","overriders":{"labelsOverrider":[{"operator":"add","value":{"by":"late"}}]}}]`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, got, err := Apply(object(t, deployment), member("m1"), tc.cluster, tc.namespaced)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsSayWhoWhereAndWhatToDo(t *testing.T) {
	spec := `overrideRules:
- {overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}
- overriders:
    plaintext:
    - {path: /spec/paused, operator: add, value: true}
    - {path: /spec/minReadySeconds, operator: replace, value: 5}`
	_, _, err := Apply(object(t, deployment), member("m1"), nil, []Object{namespacePolicy(t, "shop", "slow", spec)})
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

func TestTheRemedyOfAReplacementWorks(t *testing.T) {
	const rest = `or select only resources that have the field`
	tests := map[string]struct {
		entry, remedy, remedied string
	}{
		"a field that is missing": {
			`{path: /spec/minReadySeconds, operator: replace, value: 5}`,
			`use operator "add", ` + rest, `{path: /spec/minReadySeconds, operator: add, value: 5}`,
		},
		"a field below one that is missing": {
			`{path: /spec/strategy/rollingUpdate/maxSurge, operator: replace, value: 1}`,
			`use operator "add" with the object or list around it, ` + rest, `{path: /spec/strategy, operator: add, value: {rollingUpdate: {maxSurge: 1}}}`,
		},
		"a field below one that has no fields": {
			`{path: /spec/replicas/least, operator: replace, value: 1}`,
			`use operator "add" with the object or list around it, ` + rest, `{path: /spec/replicas, operator: add, value: {least: 1}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			apply := func(entry string) error {
				source := namespacePolicy(t, "shop", "slow", `overrideRules: [{overriders: {plaintext: [`+entry+`]}}]`)
				_, _, err := Apply(object(t, deployment), member("m1"), nil, []Object{source})
				return err
			}
			var failure *RuleError
			if err := apply(tc.entry); !errors.As(err, &failure) || failure.Remedy != tc.remedy {
				t.Errorf("got %v, want the remedy %q", err, tc.remedy)
			}
			if err := apply(tc.remedied); err != nil {
				t.Errorf("what it says to do fails too: %v", err)
			}
		})
	}
}

func TestAMissingPathFailsOnlyTheClustersOfItsRule(t *testing.T) {
	source := clusterPolicy(t, "p", `overrideRules:
- {targetCluster: {clusterNames: [m2]}, overriders: {plaintext: [{path: /spec/none/x, operator: replace, value: 1}]}}`)
	if _, _, err := Apply(object(t, deployment), member("m1"), []Object{source}, nil); err != nil {
		t.Errorf("m1: %v", err)
	}
	if _, _, err := Apply(object(t, deployment), member("m2"), []Object{source}, nil); err == nil {
		t.Error("m2: no error")
	}
}

// TestApplyIsPure draws policies and checks that the result does not depend on the
// order in which they are given, and that neither they nor the manifest change.
func TestApplyIsPure(t *testing.T) {
	pool := []Object{
		clusterPolicy(t, "a", label("a", byKind)),
		clusterPolicy(t, "b", label("b", byName)),
		clusterPolicy(t, "c", `overrideRules: [{overriders: {plaintext: [{path: /spec/template/spec/containers/0/env, operator: add, value: [{name: A, value: {deep: [1]}}]}]}}]`),
		clusterPolicy(t, "d", `overrideRules: [{overriders: {plaintext: [{path: /spec/template/spec/containers/-, operator: add, value: {name: new, image: "x:1"}}]}}]`),
		clusterPolicy(t, "e", `overrideRules: [{overriders: {imageOverrider: [{component: Registry, operator: replace, value: reg.local}]}}]`),
		clusterPolicy(t, "f", `overrideRules: [{overriders: {argsOverrider: [{containerName: web, operator: remove, value: [-a]}]}}]`),
		clusterPolicy(t, "g", `overrideRules: [{overriders: {plaintext: [{path: /spec/template/spec/containers/0, operator: remove}]}}]`),
	}
	sample := object(t, deployment)
	rapid.Check(t, func(t *rapid.T) {
		policies := rapid.SliceOfDistinct(rapid.SampledFrom(pool), func(o Object) string { return o.GetName() }).Draw(t, "policies")
		copies := make([]any, len(policies))
		for i, source := range policies {
			copies[i] = source.DeepCopyObject()
		}
		manifest := sample.DeepCopy()
		first, firstRecord, firstErr := Apply(manifest, member("m1"), policies, nil)
		reversed := slices.Clone(policies)
		slices.Reverse(reversed)
		second, secondRecord, secondErr := Apply(manifest, member("m1"), reversed, nil)
		if diff := cmp.Diff(first, second); diff != "" || firstRecord != secondRecord || (firstErr == nil) != (secondErr == nil) {
			t.Fatalf("the order of the policies matters: %s", diff)
		}
		if diff := cmp.Diff(sample, manifest); diff != "" {
			t.Fatalf("the manifest was changed: %s", diff)
		}
		if first != nil {
			scribble(first.Object)
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

// scribble overwrites every leaf, so that shared memory shows.
func scribble(node any) {
	switch parent := node.(type) {
	case map[string]any:
		for key := range parent {
			scribble(parent[key])
			if _, leaf := parent[key].(string); leaf {
				parent[key] = "scribbled"
			}
		}
	case []any:
		for i := range parent {
			scribble(parent[i])
			if _, leaf := parent[i].(string); leaf {
				parent[i] = "scribbled"
			}
		}
	}
}

func TestSpecificity(t *testing.T) {
	manifest := object(t, deployment)
	if got := Specificity(clusterPolicy(t, "p", `resourceSelectors: [{apiVersion: v1, kind: Pod}]`), manifest); got != 0 {
		t.Errorf("a policy for Pods concerns a Deployment, rank %d", got)
	}
	if got := Specificity(&policyv1alpha1.ClusterOverridePolicy{}, manifest); got != 1 {
		t.Errorf("a policy without selectors has rank %d, want 1", got)
	}
}

func BenchmarkApply(b *testing.B) {
	policies := []Object{
		clusterPolicy(b, "mirror", `overrideRules: [{overriders: {imageOverrider: [{component: Registry, operator: replace, value: reg.local}]}}]`),
		clusterPolicy(b, "args", `overrideRules: [{targetCluster: {clusterNames: [m1]}, overriders: {argsOverrider: [{containerName: web, operator: add, value: [-v]}]}}]`),
	}
	manifest, cluster := object(b, deployment), member("m1")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Apply(manifest, cluster, policies, nil); err != nil {
			b.Fatal(strings.TrimSpace(err.Error()))
		}
	}
}
