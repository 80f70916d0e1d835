package admission

import (
	"fmt"
	"slices"
	"testing"
)

// allGatesDisabled are options in which all feature gates are disabled.
var allGatesDisabled = Options{IsGateDisabled: func(string) bool { return true }}

// withDisabledGates returns options in which the named feature gates are disabled.
func withDisabledGates(gates ...string) Options {
	return Options{IsGateDisabled: func(gate string) bool { return slices.Contains(gates, gate) }}
}

func clusterPolicyYAML(selector, spec string) string {
	return fmt.Sprintf(`{kind: ClusterPropagationPolicy, metadata: {name: web, labels: {clusterpropagationpolicy.karmada.io/permanent-id: id}}, spec: {resourceSelectors: [{%s}], %s}}`, selector, spec)
}

func TestWarnIneffectiveFields(t *testing.T) {
	const pod = `apiVersion: v1, kind: Pod, name: p`
	policy := func(spec string) string { return clusterPolicyYAML(pod, spec) }
	selecting := func(selector string) string { return clusterPolicyYAML(selector, ``) }
	const selector = "spec.resourceSelectors[0]"
	runValidationCases(t, map[string]validationCase{
		"association": {new: policy(`association: true`), warnings: []string{"spec.association"}},
		"an invalid label selector": {
			new:      selecting(`apiVersion: v1, kind: Pod, labelSelector: {matchExpressions: [{key: a, operator: Near}]}`),
			warnings: []string{selector + ".labelSelector"},
		},
		"a label selector beside a name":    {new: selecting(pod + `, labelSelector: {}`), warnings: []string{selector + ".labelSelector"}},
		"an invalid API version":            {new: selecting(`apiVersion: a/b/c, kind: Pod`), warnings: []string{selector + ".apiVersion"}},
		"a kind that is never propagated":   {new: selecting(`apiVersion: work.karmada.io/v1alpha1, kind: Work`), warnings: []string{selector}},
		"preemption, gate disabled":         {new: policy(`preemption: Always`), rules: withDisabledGates("PropagationPolicyPreemption"), warnings: []string{"spec.preemption"}},
		"preemption, gate enabled":          {new: policy(`preemption: Always`), rules: withDisabledGates()},
		"no preemption, gate disabled":      {new: policy(`preemption: Never`), rules: withDisabledGates("PropagationPolicyPreemption")},
		"an invalid name of an override":    {new: policy(`dependentOverrides: [good, "not good"]`), warnings: []string{"spec.dependentOverrides[1]"}},
		"a suspension of a lazy policy":     {new: policy(`activationPreference: Lazy, suspension: {dispatching: true}`), warnings: []string{"spec.suspension"}},
		"a suspension of clusters, lazy":    {new: policy(`activationPreference: Lazy, suspension: {dispatchingOnClusters: {clusterNames: [m1]}}`), warnings: []string{"spec.suspension"}},
		"no suspension of a lazy policy":    {new: policy(`activationPreference: Lazy, suspension: {dispatching: false}`)},
		"a suspension takes effect at once": {new: policy(`suspension: {dispatching: true}`)},
		"cluster failover, gate disabled":   {new: policy(`failover: {cluster: {purgeMode: Directly}}`), rules: withDisabledGates("Failover"), warnings: []string{"spec.failover.cluster"}},
		"state preservation without Directly": {
			new:      policy(`failover: {cluster: {purgeMode: Gracefully, statePreservation: {rules: [{aliasLabelName: a, jsonPath: x}]}}}`),
			warnings: []string{"spec.failover.cluster.statePreservation"},
		},
		"state preservation, gate disabled": {
			new:      policy(`propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: a, jsonPath: x}]}}}`),
			rules:    withDisabledGates("StatefulFailoverInjection"),
			warnings: []string{"spec.failover.application.statePreservation"},
		},
		"an invalid JSON path prevents failover": {
			new:      policy(`propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{.x"}]}}}`),
			warnings: []string{"spec.failover.application.statePreservation.rules[0].jsonPath"},
		},
		"a ClusterTaintPolicy, gate disabled": {new: validTaints, rules: allGatesDisabled, warnings: []string{"spec"}},
	})
}

func TestWarnIneffectivePlacement(t *testing.T) {
	placement := func(fields string) string {
		return clusterPolicyYAML(`apiVersion: v1, kind: Pod`, `placement: {`+fields+`}`)
	}
	scheduling := func(strategy string) string { return placement(`replicaScheduling: {` + strategy + `}`) }
	spread := func(constraint, strategy string) string {
		return placement(`spreadConstraints: [{spreadByField: cluster, minGroups: 1}, ` + constraint + `], replicaScheduling: {` + strategy + `}`)
	}
	const (
		prefix   = "spec.placement."
		strategy = prefix + "replicaScheduling."
		weights  = `weightPreference: {staticWeightList: [{weight: 1, targetCluster: {clusterNames: [m1]}}]}`
		both     = `weightPreference: {dynamicWeight: AvailableReplicas, staticWeightList: [{weight: 1, targetCluster: {clusterNames: [m1]}}]}`
		divided  = `replicaSchedulingType: Divided, replicaDivisionPreference: `
	)
	runValidationCases(t, map[string]validationCase{
		"workload affinity, gate disabled": {
			new: placement(`workloadAffinity: {affinity: {groupByLabelKey: a}}`), rules: withDisabledGates("WorkloadAffinity"),
			warnings: []string{prefix + "workloadAffinity"},
		},
		"spreading by a label": {
			new:      placement(`spreadConstraints: [{spreadByLabel: x, minGroups: 1}]`),
			warnings: []string{prefix + "spreadConstraints[0].spreadByLabel"},
		},
		"spreading by zone and provider": {
			new:      spread(`{spreadByField: zone, minGroups: 1}, {spreadByField: provider, minGroups: 1}, {spreadByField: region, minGroups: 1}`, `replicaSchedulingType: Duplicated`),
			warnings: []string{prefix + "spreadConstraints[1].spreadByField", prefix + "spreadConstraints[2].spreadByField"},
		},
		"spreading with static weights":    {new: spread(``, divided+`Weighted, `+weights), warnings: []string{prefix + "spreadConstraints"}},
		"spreading with equal weights":     {new: spread(``, divided+`Weighted`), warnings: []string{prefix + "spreadConstraints"}},
		"spreading with dynamic weights":   {new: spread(``, divided+`Weighted, weightPreference: {dynamicWeight: AvailableReplicas}`)},
		"spreading of aggregated replicas": {new: spread(``, divided+`Aggregated`)},
		"a division of duplicated replicas": {
			new:      scheduling(`replicaSchedulingType: Duplicated, replicaDivisionPreference: Weighted, ` + weights),
			warnings: []string{strategy + "replicaDivisionPreference", strategy + "weightPreference"},
		},
		"weights of aggregated replicas": {new: scheduling(divided + `Aggregated, ` + weights), warnings: []string{strategy + "weightPreference"}},
		"static weights beside dynamic":  {new: scheduling(divided + `Weighted, ` + both), warnings: []string{strategy + "weightPreference.staticWeightList"}},
		"static weights alone":           {new: scheduling(divided + `Weighted, ` + weights)},
		"invalid cluster names":          {new: placement(`clusterAffinity: {clusterNames: [m1, M1], exclude: [a_b]}`), warnings: []string{prefix + "clusterAffinity.clusterNames[1]", prefix + "clusterAffinity.exclude[0]"}},
		"names that are excluded":        {new: placement(`clusterAffinity: {clusterNames: [m1, m2], exclude: [m2]}`), warnings: []string{prefix + "clusterAffinity.clusterNames[1]"}},
		"a field without values": {
			new:      placement(`clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: In}]}}`),
			warnings: []string{prefix + "clusterAffinity.fieldSelector.matchExpressions[0].values"},
		},
		"an unsupported taint effect": {
			new:      placement(`clusterTolerations: [{key: a, operator: Exists, effect: PreferNoSchedule}, {key: a, operator: Exists}]`),
			warnings: []string{prefix + "clusterTolerations[0].effect"},
		},
		"tolerationSeconds for NoSchedule": {
			new:      placement(`clusterTolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 1}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 1}]`),
			warnings: []string{prefix + "clusterTolerations[0].tolerationSeconds"},
		},
	})
}
