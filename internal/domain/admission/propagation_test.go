package admission

import "testing"

const (
	propagationPolicyHead        = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: shop, labels: {propagationpolicy.karmada.io/permanent-id: id}}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}], `
	clusterPropagationPolicyHead = `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: web, labels: {clusterpropagationpolicy.karmada.io/permanent-id: id}}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], `
	policyEnd                    = `}}`

	validPropagationPolicy = propagationPolicyHead + `schedulerName: default-scheduler, placement: {clusterAffinity: {clusterNames: [m1]}, spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}], replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}` + policyEnd
)

func propagationPolicy(spec string) string { return propagationPolicyHead + spec + policyEnd }
func clusterPropagationPolicy(spec string) string {
	return clusterPropagationPolicyHead + spec + policyEnd
}

func policyWithPlacement(placement string) string {
	return clusterPropagationPolicy(`placement: {` + placement + `}`)
}

func TestPropagationPolicyRules(t *testing.T) {
	const idless = `{kind: PropagationPolicy, metadata: {name: web, namespace: shop}, spec: {resourceSelectors: []}}`
	runValidationCases(t, map[string]validationCase{
		"a valid policy": {new: validPropagationPolicy},
		"the permanent id must be present": {
			new:    idless,
			errors: []string{"FieldValueRequired metadata.labels[propagationpolicy.karmada.io/permanent-id]"},
		},
		"the permanent id is immutable": {
			old:    propagationPolicy(``),
			new:    `{kind: PropagationPolicy, metadata: {name: web, namespace: shop, labels: {propagationpolicy.karmada.io/permanent-id: other}}, spec: {resourceSelectors: []}}`,
			errors: []string{"FieldValueInvalid metadata.labels[propagationpolicy.karmada.io/permanent-id]"},
		},
		"the permanent id is immutable even while the policy is being deleted": {
			old:    propagationPolicy(``),
			new:    `{kind: PropagationPolicy, metadata: {name: web, namespace: shop, deletionTimestamp: "2024-01-01T00:00:00Z"}, spec: {resourceSelectors: []}}`,
			errors: []string{"FieldValueRequired metadata.labels[propagationpolicy.karmada.io/permanent-id]"},
		},
		"a stored policy without an id may get one": {old: idless, new: propagationPolicy(``)},
		"a cluster policy has an id of its own": {
			new:    `{kind: ClusterPropagationPolicy, metadata: {name: web, labels: {propagationpolicy.karmada.io/permanent-id: id}}, spec: {resourceSelectors: []}}`,
			errors: []string{"FieldValueRequired metadata.labels[clusterpropagationpolicy.karmada.io/permanent-id]"},
		},
		"the scheduler name is immutable": {
			old: propagationPolicy(`schedulerName: a`), new: propagationPolicy(`schedulerName: b`),
			errors: []string{"FieldValueInvalid spec.schedulerName"},
		},
		"the scheduler name of a policy that is being deleted is immutable": {
			old:    propagationPolicy(`schedulerName: a`),
			new:    `{kind: PropagationPolicy, metadata: {name: web, namespace: shop, labels: {propagationpolicy.karmada.io/permanent-id: id}, deletionTimestamp: "2024-01-01T00:00:00Z"}, spec: {resourceSelectors: [], schedulerName: b}}`,
			errors: []string{"FieldValueInvalid spec.schedulerName"},
		},
		"a selector of another namespace": {
			new:    `{kind: PropagationPolicy, metadata: {name: web, namespace: shop, labels: {propagationpolicy.karmada.io/permanent-id: id}}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: shop}, {apiVersion: v1, kind: Pod, namespace: other}]}}`,
			errors: []string{"FieldValueInvalid spec.resourceSelectors[1].namespace"},
		},
		"a cluster policy selects in any namespace": {
			new: `{kind: ClusterPropagationPolicy, metadata: {name: web, labels: {clusterpropagationpolicy.karmada.io/permanent-id: id}}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: other}]}}`,
		},
		"preemption needs names":       {new: clusterPropagationPolicy(`preemption: Always`), errors: []string{"FieldValueRequired spec.resourceSelectors[0].name"}},
		"preemption with names":        {new: propagationPolicy(`preemption: Always`)},
		"no preemption needs no names": {new: clusterPropagationPolicy(`preemption: Never`)},
		"suspension of all excludes suspension of some": {
			new:    propagationPolicy(`suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [m1]}}`),
			errors: []string{"FieldValueInvalid spec.suspension.dispatchingOnClusters.clusterNames"},
		},
		"suspension of some clusters": {new: propagationPolicy(`suspension: {dispatching: false, dispatchingOnClusters: {clusterNames: [m1]}}`)},
		"suspension of all clusters":  {new: propagationPolicy(`suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: []}}`)},
	})
}

func TestFailoverRules(t *testing.T) {
	application := func(fields string) string {
		return propagationPolicy(`propagateDeps: true, failover: {application: {decisionConditions: {}, ` + fields + `}}`)
	}
	runValidationCases(t, map[string]validationCase{
		"application failover needs propagateDeps": {
			new:    propagationPolicy(`failover: {application: {decisionConditions: {}, purgeMode: Directly}}`),
			errors: []string{"FieldValueInvalid spec.propagateDeps"},
		},
		"a toleration of 0 seconds": {new: propagationPolicy(`propagateDeps: true, failover: {application: {decisionConditions: {tolerationSeconds: 0}, purgeMode: Directly}}`)},
		"a negative toleration": {
			new:    propagationPolicy(`propagateDeps: true, failover: {application: {decisionConditions: {tolerationSeconds: -1}, purgeMode: Directly}}`),
			errors: []string{"FieldValueInvalid spec.failover.application.decisionConditions.tolerationSeconds"},
		},
		"Gracefully needs a grace period":      {new: application(`purgeMode: Gracefully`), errors: []string{"FieldValueRequired spec.failover.application.gracePeriodSeconds"}},
		"Gracefully with a grace period":       {new: application(`purgeMode: Gracefully, gracePeriodSeconds: 1`)},
		"a grace period of 0":                  {new: application(`purgeMode: Gracefully, gracePeriodSeconds: 0`), errors: []string{"FieldValueInvalid spec.failover.application.gracePeriodSeconds"}},
		"Directly has no grace period":         {new: application(`purgeMode: Directly, gracePeriodSeconds: 1`), errors: []string{"FieldValueInvalid spec.failover.application.gracePeriodSeconds"}},
		"an alias has to be a label name":      {new: application(`purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: a/b, jsonPath: x}, {aliasLabelName: "a b", jsonPath: x}]}`), errors: []string{"FieldValueInvalid spec.failover.application.statePreservation.rules[1].aliasLabelName"}},
		"an alias of cluster failover as well": {new: propagationPolicy(`failover: {cluster: {purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: "", jsonPath: x}]}}}`), errors: []string{"FieldValueInvalid spec.failover.cluster.statePreservation.rules[0].aliasLabelName", "FieldValueInvalid spec.failover.cluster.statePreservation.rules[0].aliasLabelName"}},
	})
}

func TestPlacementRules(t *testing.T) {
	const divided = `, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}`
	overflow := func(inline, overflows, scheduling string) string {
		return policyWithPlacement(`clusterAffinities: [{affinityName: a, ` + inline + `overflowAffinities: [` + overflows + `]}]` + scheduling)
	}
	const prefix = "spec.placement."
	runValidationCases(t, map[string]validationCase{
		"clusterAffinity excludes clusterAffinities": {
			new:    policyWithPlacement(`clusterAffinity: {}, clusterAffinities: [{affinityName: a}]`),
			errors: []string{"FieldValueInvalid " + prefix + "clusterAffinities"},
		},
		"fields of clusters": {new: policyWithPlacement(`clusterAffinity: {fieldSelector: {matchExpressions: [{key: provider, operator: In, values: [x]}, {key: region, operator: NotIn, values: [x]}, {key: zone, operator: In, values: [x]}]}}`)},
		"unknown fields and operators": {
			new: policyWithPlacement(`clusterAffinity: {fieldSelector: {matchExpressions: [{key: name, operator: Exists, values: [x]}]}}`),
			errors: []string{
				"FieldValueNotSupported " + prefix + "clusterAffinity.fieldSelector.matchExpressions[0].key",
				"FieldValueNotSupported " + prefix + "clusterAffinity.fieldSelector.matchExpressions[0].operator",
			},
		},
		"a static weight selects clusters too": {
			new:    policyWithPlacement(`replicaScheduling: {weightPreference: {staticWeightList: [{weight: 1, targetCluster: {fieldSelector: {matchExpressions: [{key: name, operator: In, values: [x]}]}}}]}}`),
			errors: []string{"FieldValueNotSupported " + prefix + "replicaScheduling.weightPreference.staticWeightList[0].targetCluster.fieldSelector.matchExpressions[0].key"},
		},
		"affinity names are label keys": {
			new:    policyWithPlacement(`clusterAffinities: [{affinityName: a_b}, {affinityName: "a b"}]`),
			errors: []string{"FieldValueInvalid " + prefix + "clusterAffinities[1].affinityName"},
		},
		"affinity names are unique": {
			new:    policyWithPlacement(`clusterAffinities: [{affinityName: a}, {affinityName: a}]`),
			errors: []string{"FieldValueDuplicate " + prefix + "clusterAffinities[1].affinityName"},
		},
		"overflow of aggregated replicas": {new: overflow(`clusterNames: [m1], `, `{affinityName: b}`, divided)},
		"overflow of dynamic weights": {
			new: overflow(`clusterNames: [m1], `, `{affinityName: b}`, `, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}`),
		},
		"no overflow of static weights": {
			new:    overflow(`clusterNames: [m1], `, `{affinityName: b}`, `, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}`),
			errors: []string{"FieldValueForbidden " + prefix + "clusterAffinities[0].overflowAffinities"},
		},
		"no overflow of duplicated replicas": {
			new:    overflow(`clusterNames: [m1], `, `{affinityName: b}`, ``),
			errors: []string{"FieldValueForbidden " + prefix + "clusterAffinities[0].overflowAffinities"},
		},
		"no overflow of an affinity for all clusters": {
			new:    overflow(``, `{affinityName: b}`, divided),
			errors: []string{"FieldValueForbidden " + prefix + "clusterAffinities[0].overflowAffinities"},
		},
		"overflow names differ from each other and from the term": {
			new: overflow(`exclude: [m1], `, `{affinityName: b}, {affinityName: b}, {affinityName: a}, {affinityName: "-"}`, divided),
			errors: []string{
				"FieldValueDuplicate " + prefix + "clusterAffinities[0].overflowAffinities[1].affinityName",
				"FieldValueDuplicate " + prefix + "clusterAffinities[0].overflowAffinities[2].affinityName",
				"FieldValueInvalid " + prefix + "clusterAffinities[0].overflowAffinities[3].affinityName",
			},
		},
		"spreading by a field needs clusters": {
			new:    policyWithPlacement(`spreadConstraints: [{spreadByField: region, minGroups: 1}]`),
			errors: []string{"FieldValueInvalid " + prefix + "spreadConstraints"},
		},
		"spreading by region and cluster": {new: policyWithPlacement(`spreadConstraints: [{spreadByField: region, minGroups: 1}, {spreadByField: cluster, minGroups: 1}]`)},
		"spreading by one field twice": {
			new:    policyWithPlacement(`spreadConstraints: [{spreadByField: cluster}, {spreadByField: cluster}]`),
			errors: []string{"FieldValueDuplicate " + prefix + "spreadConstraints[1].spreadByField"},
		},
		"spreading by field and label": {
			new:      policyWithPlacement(`spreadConstraints: [{spreadByField: cluster, spreadByLabel: x}]`),
			errors:   []string{"FieldValueInvalid " + prefix + "spreadConstraints[0].spreadByLabel"},
			warnings: []string{prefix + "spreadConstraints[0].spreadByLabel"},
		},
		"groups are not negative": {
			new: policyWithPlacement(`spreadConstraints: [{spreadByField: cluster, minGroups: -1, maxGroups: -2}]`),
			errors: []string{
				"FieldValueInvalid " + prefix + "spreadConstraints[0].minGroups",
				"FieldValueInvalid " + prefix + "spreadConstraints[0].maxGroups",
			},
		},
		"maxGroups is not less than minGroups": {
			new:    policyWithPlacement(`spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 1}]`),
			errors: []string{"FieldValueInvalid " + prefix + "spreadConstraints[0].maxGroups"},
		},
		"maxGroups 0 means no limit": {new: policyWithPlacement(`spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 0}]`)},
		"workload affinity groups by two different label keys": {
			new:    policyWithPlacement(`workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: a}}`),
			errors: []string{"FieldValueDuplicate " + prefix + "workloadAffinity.antiAffinity.groupByLabelKey"},
		},
		"workload affinity groups by label keys": {
			new:    policyWithPlacement(`workloadAffinity: {affinity: {groupByLabelKey: a/b/c}, antiAffinity: {groupByLabelKey: a}}`),
			errors: []string{"FieldValueInvalid " + prefix + "workloadAffinity.affinity.groupByLabelKey"},
		},
		"tolerations do not compare numbers": {
			new: policyWithPlacement(`clusterTolerations: [{key: a, operator: Exists}, {key: a, operator: Lt, value: "1"}, {key: a, operator: Gt, value: "1"}]`),
			errors: []string{
				"FieldValueNotSupported " + prefix + "clusterTolerations[1].operator",
				"FieldValueNotSupported " + prefix + "clusterTolerations[2].operator",
			},
		},
	})
}

func TestPropagationPolicyDefaults(t *testing.T) {
	const stamped = `labels: {propagationpolicy.karmada.io/permanent-id: new-id}, finalizers: [karmada.io/propagation-policy-controller]`
	policy := func(metadata, spec string) string {
		return `{kind: PropagationPolicy, metadata: {name: web, namespace: shop, ` + metadata + `}, spec: {` + spec + `}}`
	}
	const selectors = `resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: shop}]`
	runDefaultingCases(t, map[string]defaultingCase{
		"a selector gets the namespace of the policy": {
			new:  policy(``, `resourceSelectors: [{apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: Pod, namespace: other}]`),
			want: policy(stamped, `resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: shop}, {apiVersion: v1, kind: Pod, namespace: other}]`),
		},
		"a new policy always gets a new id": {
			new:  policy(`labels: {propagationpolicy.karmada.io/permanent-id: copied}, finalizers: [x]`, selectors),
			want: policy(`labels: {propagationpolicy.karmada.io/permanent-id: new-id}, finalizers: [x, karmada.io/propagation-policy-controller]`, selectors),
		},
		"an update keeps id and finalizers": {
			old:  policy(`labels: {propagationpolicy.karmada.io/permanent-id: id}`, selectors),
			new:  policy(`labels: {propagationpolicy.karmada.io/permanent-id: id}`, selectors),
			want: policy(`labels: {propagationpolicy.karmada.io/permanent-id: id}`, selectors),
		},
		"a stored policy without an id gets one": {
			old: policy(``, selectors), new: policy(``, selectors), want: policy(stamped, selectors),
		},
		"a spread constraint defaults to one cluster": {
			new:  policy(``, selectors+`, placement: {spreadConstraints: [{}, {spreadByLabel: x}, {spreadByField: zone, minGroups: 2}]}`),
			want: policy(stamped, selectors+`, placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 1}, {spreadByLabel: x, minGroups: 1}, {spreadByField: zone, minGroups: 2}]}`),
		},
		"a ServiceImport enables propagateDeps": {
			new:  policy(``, `resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, namespace: shop}]`),
			want: policy(stamped, `propagateDeps: true, resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, namespace: shop}]`),
		},
		"divided replicas are weighted": {
			new:  policy(``, selectors+`, placement: {replicaScheduling: {replicaSchedulingType: Divided}}`),
			want: policy(stamped, selectors+`, placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}`),
		},
		"duplicated replicas have no preference": {
			new:  policy(``, selectors+`, placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}`),
			want: policy(stamped, selectors+`, placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}`),
		},
		"a graceful failover has 600 seconds": {
			new:  policy(``, selectors+`, failover: {application: {decisionConditions: {}, purgeMode: Gracefully}}`),
			want: policy(stamped, selectors+`, failover: {application: {decisionConditions: {}, purgeMode: Gracefully, gracePeriodSeconds: 600}}`),
		},
		"a direct failover has no grace period": {
			new:  policy(``, selectors+`, failover: {application: {decisionConditions: {}, purgeMode: Directly}}`),
			want: policy(stamped, selectors+`, failover: {application: {decisionConditions: {}, purgeMode: Directly}}`),
		},
		"a cluster policy selects in all namespaces": {
			new:  `{kind: ClusterPropagationPolicy, metadata: {name: web}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}]}}`,
			want: `{kind: ClusterPropagationPolicy, metadata: {name: web, labels: {clusterpropagationpolicy.karmada.io/permanent-id: new-id}, finalizers: [karmada.io/cluster-propagation-policy-controller]}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}]}}`,
		},
	})
}
