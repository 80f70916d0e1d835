package admission

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	validOverridePolicy = `{kind: OverridePolicy, metadata: {name: o, namespace: shop}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: shop}], overrideRules: [{targetCluster: {clusterNames: [m1]}, overriders: {labelsOverrider: [{operator: add, value: {a: b}}], annotationsOverrider: [{operator: add, value: {a: "b c"}}], imageOverrider: [{component: Tag, operator: replace, value: v2, predicate: {path: /spec/image}}], fieldOverrider: [{fieldPath: /data/a~1b, json: [{subPath: /x, operator: add, value: 1}]}]}}]}}`
	validTaints         = `{kind: ClusterTaintPolicy, metadata: {name: t}, spec: {taints: [{key: a, effect: NoSchedule}, {key: b, effect: NoSchedule}]}}`
	validQuota          = `{kind: FederatedResourceQuota, metadata: {name: q, namespace: shop}, spec: {overall: {cpu: "10", pods: "5", count/jobs.batch: "3", requests.nvidia.com/gpu: "1"}, staticAssignments: [{clusterName: m1, hard: {cpu: "4"}}, {clusterName: m2, hard: {cpu: "6"}}]}}`
)

func TestOverridePolicyRules(t *testing.T) {
	cluster := func(spec string) string {
		return `{kind: ClusterOverridePolicy, metadata: {name: o}, spec: {` + spec + `}}`
	}
	rule := func(overriders string) string {
		return cluster(`overrideRules: [{overriders: {` + overriders + `}}]`)
	}
	operation := func(operation string) string {
		return rule(`fieldOverrider: [{fieldPath: /a, yaml: [` + operation + `]}]`)
	}
	const prefix = "spec.overrideRules[0].overriders."
	runValidationCases(t, map[string]validationCase{
		"a valid policy": {new: validOverridePolicy},
		"a selector of another namespace": {
			new:    `{kind: OverridePolicy, metadata: {name: o, namespace: shop}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: other}]}}`,
			errors: []string{"FieldValueInvalid spec.resourceSelectors[0].namespace"},
		},
		"a cluster policy selects in any namespace": {new: cluster(`resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: other}]`)},
		"the deprecated fields alone are accepted": {
			new:      cluster(`targetCluster: {}, overriders: {plaintext: [{path: /a, operator: remove}]}`),
			warnings: []string{"spec.targetCluster", "spec.overriders"},
		},
		"the deprecated fields exclude rules": {
			new:      cluster(`targetCluster: {}, overriders: {plaintext: [{path: /a, operator: remove}]}, overrideRules: [{overriders: {}}]`),
			errors:   []string{"FieldValueForbidden spec.targetCluster", "FieldValueForbidden spec.overriders"},
			warnings: []string{"spec.targetCluster", "spec.overriders"},
		},
		"deprecated fieldOverrider beside overrideRules": {
			new:      cluster(`overriders: {fieldOverrider: [{fieldPath: /a}]}, overrideRules: [{overriders: {}}]`),
			warnings: []string{"spec.overriders.fieldOverrider"},
		},
		"deprecated fieldOverrider alone": {
			new:      cluster(`overriders: {fieldOverrider: [{fieldPath: /a}]}`),
			warnings: []string{"spec.overriders"},
		},
		"remove with a value has no effect": {
			new:      rule(`plaintext: [{path: /a, operator: remove, value: 1}, {path: /b, operator: remove}], imageOverrider: [{component: Tag, operator: remove, value: v1}]`),
			warnings: []string{prefix + "plaintext[0].value", prefix + "imageOverrider[0].value"},
		},
		"unknown cluster field in targetCluster": {
			new:      cluster(`targetCluster: {fieldSelector: {matchExpressions: [{key: x, operator: In, values: [y]}]}}`),
			errors:   []string{"FieldValueNotSupported spec.targetCluster.fieldSelector.matchExpressions[0].key"},
			warnings: []string{"spec.targetCluster"},
		},
		"unknown cluster field in a rule": {
			new:    cluster(`overrideRules: [{targetCluster: {fieldSelector: {matchExpressions: [{key: x, operator: In, values: [y]}]}}, overriders: {}}]`),
			errors: []string{"FieldValueNotSupported spec.overrideRules[0].targetCluster.fieldSelector.matchExpressions[0].key"},
		},
		"annotations have valid keys": {new: rule(`annotationsOverrider: [{operator: add, value: {"a b": c}}]`), errors: []string{"FieldValueInvalid " + prefix + "annotationsOverrider[0].value"}},
		"labels have valid values":    {new: rule(`labelsOverrider: [{operator: add, value: {a: "b c"}}]`), errors: []string{"FieldValueInvalid " + prefix + "labelsOverrider[0].value"}},
		"an image path is a JSON pointer": {
			new:    rule(`imageOverrider: [{component: Tag, operator: remove, predicate: {path: spec/image}}]`),
			errors: []string{"FieldValueInvalid " + prefix + "imageOverrider[0].predicate.path"},
		},
		"an image overrider gives a valid image": {
			new:    rule(`imageOverrider: [{component: Tag, operator: replace, value: ":v2"}]`),
			errors: []string{"FieldValueInvalid " + prefix + "imageOverrider[0].value"},
		},
		"a stored image overrider may stay": {
			old:      rule(`imageOverrider: [{component: Registry, operator: replace, value: "mirror.example//team"}]`),
			new:      rule(`imageOverrider: [{component: Registry, operator: replace, value: "mirror.example//team"}], labelsOverrider: [{operator: add, value: {a: b}}]`),
			warnings: []string{prefix + "imageOverrider[0].value"},
		},
		"an image path is not empty": {
			new:    rule(`imageOverrider: [{component: Tag, operator: remove, predicate: {path: ""}}]`),
			errors: []string{"FieldValueRequired " + prefix + "imageOverrider[0].predicate.path"},
		},
		"a tilde in a JSON pointer is an escape": {
			new:    rule(`imageOverrider: [{component: Tag, operator: remove, predicate: {path: /a~2}}]`),
			errors: []string{"FieldValueInvalid " + prefix + "imageOverrider[0].predicate.path"},
		},
		"a field is patched as JSON or YAML, not both": {
			new:    rule(`fieldOverrider: [{fieldPath: /a, json: [{subPath: /b, operator: remove}], yaml: [{subPath: /b, operator: remove}]}]`),
			errors: []string{"FieldValueInvalid " + prefix + "fieldOverrider[0]"},
		},
		"a field without operations": {new: rule(`fieldOverrider: [{fieldPath: /a}]`), errors: []string{"FieldValueRequired " + prefix + "fieldOverrider[0]"}},
		"a field path is a JSON pointer": {
			new:    rule(`fieldOverrider: [{fieldPath: a, json: [{subPath: b, operator: remove}]}]`),
			errors: []string{"FieldValueInvalid " + prefix + "fieldOverrider[0].fieldPath", "FieldValueInvalid " + prefix + "fieldOverrider[0].json[0].subPath"},
		},
		"add needs a value":               {new: operation(`{subPath: /b, operator: add}`), errors: []string{"FieldValueRequired " + prefix + "fieldOverrider[0].yaml[0].value"}},
		"replace needs a value":           {new: operation(`{subPath: /b, operator: replace}`), errors: []string{"FieldValueRequired " + prefix + "fieldOverrider[0].yaml[0].value"}},
		"remove takes no value":           {new: operation(`{subPath: /b, operator: remove, value: 1}`), errors: []string{"FieldValueForbidden " + prefix + "fieldOverrider[0].yaml[0].value"}},
		"the whole value may be replaced": {new: operation(`{subPath: "", operator: replace, value: {}}`)},
	})
	runDefaultingCases(t, map[string]defaultingCase{
		"a selector gets the namespace of the override policy": {
			new:  `{kind: OverridePolicy, metadata: {name: o, namespace: shop}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}]}}`,
			want: `{kind: OverridePolicy, metadata: {name: o, namespace: shop}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: shop}]}}`,
		},
		"a ClusterOverridePolicy gets no namespace": {
			new:  `{kind: ClusterOverridePolicy, metadata: {name: o}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}]}}`,
			want: `{kind: ClusterOverridePolicy, metadata: {name: o}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}]}}`,
		},
	})
}

func TestClusterTaintPolicyRules(t *testing.T) {
	const evicting = `{kind: ClusterTaintPolicy, metadata: {name: t}, spec: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]}}`
	runValidationCases(t, map[string]validationCase{
		"valid taints":          {new: validTaints},
		"NoExecute is rejected": {new: evicting, errors: []string{"FieldValueForbidden spec.taints[1].effect"}},
		"NoExecute is allowed":  {new: evicting, rules: Options{AllowNoExecuteTaints: true}},
		"key and effect are unique": {
			new:    `{kind: ClusterTaintPolicy, metadata: {name: t}, spec: {taints: [{key: a, effect: NoSchedule, value: x}, {key: a, effect: NoSchedule, value: y}]}}`,
			errors: []string{"FieldValueDuplicate spec.taints[1]"},
		},
		"invalid taints": {
			new:    `{kind: ClusterTaintPolicy, metadata: {name: t}, spec: {taints: [{key: a, effect: PreferNoSchedule}, {key: "a b", effect: NoSchedule}, {key: c, effect: NoSchedule, value: "x y"}]}}`,
			errors: []string{"FieldValueNotSupported spec.taints[0].effect", "FieldValueInvalid spec.taints[1].key", "FieldValueInvalid spec.taints[2].value"},
		},
		"invalid conditions": {
			new: `{kind: ClusterTaintPolicy, metadata: {name: t}, spec: {taints: [{key: a, effect: NoSchedule}],
  addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ["True"]}, {conditionType: Ready, operator: Equals, statusValues: ["False"]}],
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ["Unknown", "yes"]}]}}`,
			errors: []string{"FieldValueNotSupported spec.addOnConditions[1].operator", "FieldValueNotSupported spec.removeOnConditions[0].statusValues[1]"},
		},
	})
}

func TestFederatedResourceQuotaRules(t *testing.T) {
	quotaWarnings := []string{"spec.overall[count/jobs.batch]", "spec.overall[pods]", "spec.overall[requests.nvidia.com/gpu]"}
	quota := func(rest string) string {
		return `{kind: FederatedResourceQuota, metadata: {name: q, namespace: shop}, ` + rest + `}`
	}
	runValidationCases(t, map[string]validationCase{
		"a valid quota": {new: validQuota, warnings: quotaWarnings},
		"an unchanged specification causes no warnings": {new: validQuota, old: validQuota},
		"without enforcement a limit alone has no effect": {
			new:      quota(`spec: {overall: {cpu: "1"}}`),
			rules:    Options{IsGateDisabled: func(gate string) bool { return gate == "FederatedQuotaEnforcement" }},
			warnings: []string{"spec.overall"},
		},
		"a limit below the usage": {
			new:      quota(`spec: {overall: {cpu: "4"}}, status: {overallUsed: {cpu: "8"}}`),
			warnings: []string{"spec.overall[cpu]"},
		},
		"two assignments for a cluster": {
			new:      quota(`spec: {overall: {cpu: "9"}, staticAssignments: [{clusterName: m1, hard: {cpu: "1"}}, {clusterName: m1, hard: {cpu: "2"}}]}`),
			warnings: []string{"spec.staticAssignments[1].clusterName"},
		},
		"an assignment for a cluster that does not exist": {
			new:      quota(`spec: {overall: {cpu: "9"}, staticAssignments: [{clusterName: m3, hard: {cpu: "1"}}]}`),
			rules:    Options{ClusterNames: func([]string) sets.Set[string] { return sets.New("m1") }},
			warnings: []string{"spec.staticAssignments[0]"},
		},
		"a name fits into a label": {
			new:    `{kind: FederatedResourceQuota, metadata: {name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg}, spec: {overall: {}}}`,
			errors: []string{"FieldValueTooLong metadata.name"},
		},
		"invalid resource names": {
			new:    quota(`spec: {overall: {gpu: "1", "a b": "1", hugepages-2Mi: "1", limits.cpu: "1", services.nodeports: "1"}}`),
			errors: []string{"FieldValueInvalid spec.overall[a b]", "FieldValueInvalid spec.overall[gpu]"},
		},
		"amounts are not negative": {new: quota(`spec: {overall: {cpu: "-1"}}`), errors: []string{"FieldValueInvalid spec.overall[cpu]", "FieldValueInvalid spec.overall[cpu]"}},
		"numbers of devices are whole": {
			new:    quota(`spec: {overall: {example.com/gpu: 500m, requests.example.com/gpu: 500m, kubernetes.io/x: 500m, count/jobs.batch: 500m}}`),
			errors: []string{"FieldValueInvalid spec.overall[count/jobs.batch]", "FieldValueInvalid spec.overall[example.com/gpu]"},
		},
		"numbers of objects are whole": {new: quota(`spec: {overall: {pods: 500m, cpu: 500m, secrets: 100E}}`), errors: []string{"FieldValueInvalid spec.overall[pods]"}},
		"clusters have names of clusters": {
			new:    quota(`spec: {overall: {}, staticAssignments: [{clusterName: A_B, hard: {}}, {clusterName: a23456789a23456789a23456789a23456789a23456789a234, hard: {}}]}`),
			errors: []string{"FieldValueInvalid spec.staticAssignments[0].clusterName", "FieldValueTooLong spec.staticAssignments[1].clusterName"},
		},
		"the assignments fit into overall": {
			new:    quota(`spec: {overall: {cpu: "9"}, staticAssignments: [{clusterName: m1, hard: {cpu: "5"}}, {clusterName: m2, hard: {cpu: "4500m"}}]}`),
			errors: []string{"FieldValueInvalid spec.overall[cpu]"},
		},
		"assigned resources are limited by overall": {
			new:    quota(`spec: {overall: {cpu: "9"}, staticAssignments: [{clusterName: m1, hard: {memory: 1Gi}}]}`),
			errors: []string{"FieldValueInvalid spec.staticAssignments[0].hard[memory]"},
		},
		"the status is checked the same way": {
			new: quota(`spec: {overall: {}}, status: {overall: {gpu: "1"}, overallUsed: {gpu: "1"}, aggregatedStatus: [{clusterName: "-", hard: {gpu: "1"}, used: {gpu: "1"}}]}`),
			errors: []string{
				"FieldValueInvalid status.overall[gpu]", "FieldValueInvalid status.overallUsed[gpu]",
				"FieldValueInvalid status.aggregatedStatus[0].clusterName",
				"FieldValueInvalid status.aggregatedStatus[0].hard[gpu]", "FieldValueInvalid status.aggregatedStatus[0].used[gpu]",
			},
		},
	})
}
