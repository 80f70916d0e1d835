package admission

import (
	"fmt"
	"slices"
	"testing"
)

// allOff is a control plane in which only the features are on that have no gate.
var allOff = Rules{Disabled: func(string) bool { return true }}

// off is a control plane without the named features.
func off(gates ...string) Rules {
	return Rules{Disabled: func(gate string) bool { return slices.Contains(gates, gate) }}
}

func cpp(selector, spec string) string {
	return fmt.Sprintf(`{kind: ClusterPropagationPolicy, metadata: {name: web, labels: {clusterpropagationpolicy.karmada.io/permanent-id: id}}, spec: {resourceSelectors: [{%s}], %s}}`, selector, spec)
}

func TestFieldsWithoutEffectAreWarnedAbout(t *testing.T) {
	const pod = `apiVersion: v1, kind: Pod, name: p`
	policy := func(spec string) string { return cpp(pod, spec) }
	selecting := func(selector string) string { return cpp(selector, ``) }
	const selector = "spec.resourceSelectors[0]"
	runJudgements(t, map[string]judgement{
		"association": {new: policy(`association: true`), warnings: []string{"spec.association"}},
		"a label selector that cannot be understood": {
			new:      selecting(`apiVersion: v1, kind: Pod, labelSelector: {matchExpressions: [{key: a, operator: Near}]}`),
			warnings: []string{selector + ".labelSelector"},
		},
		"a label selector beside a name":    {new: selecting(pod + `, labelSelector: {}`), warnings: []string{selector + ".labelSelector"}},
		"an API version that is none":       {new: selecting(`apiVersion: a/b/c, kind: Pod`), warnings: []string{selector + ".apiVersion"}},
		"a kind that is never propagated":   {new: selecting(`apiVersion: work.karmada.io/v1alpha1, kind: Work`), warnings: []string{selector}},
		"preemption without its gate":       {new: policy(`preemption: Always`), rules: off("PropagationPolicyPreemption"), warnings: []string{"spec.preemption"}},
		"preemption with its gate":          {new: policy(`preemption: Always`), rules: off()},
		"no preemption needs no gate":       {new: policy(`preemption: Never`), rules: off("PropagationPolicyPreemption")},
		"an override policy that cannot be": {new: policy(`dependentOverrides: [good, "not good"]`), warnings: []string{"spec.dependentOverrides[1]"}},
		"a suspension that waits":           {new: policy(`activationPreference: Lazy, suspension: {dispatching: true}`), warnings: []string{"spec.suspension"}},
		"a suspension of clusters waits":    {new: policy(`activationPreference: Lazy, suspension: {dispatchingOnClusters: {clusterNames: [m1]}}`), warnings: []string{"spec.suspension"}},
		"no suspension waits for nothing":   {new: policy(`activationPreference: Lazy, suspension: {dispatching: false}`)},
		"a suspension takes effect at once": {new: policy(`suspension: {dispatching: true}`)},
		"cluster failover without its gate": {new: policy(`failover: {cluster: {purgeMode: Directly}}`), rules: off("Failover"), warnings: []string{"spec.failover.cluster"}},
		"state that is kept without Directly": {
			new:      policy(`failover: {cluster: {purgeMode: Gracefully, statePreservation: {rules: [{aliasLabelName: a, jsonPath: x}]}}}`),
			warnings: []string{"spec.failover.cluster.statePreservation"},
		},
		"state that is kept without its gate": {
			new:      policy(`propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: a, jsonPath: x}]}}}`),
			rules:    off("StatefulFailoverInjection"),
			warnings: []string{"spec.failover.application.statePreservation"},
		},
		"a path that leads nowhere keeps the application where it is": {
			new:      policy(`propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{.x"}]}}}`),
			warnings: []string{"spec.failover.application.statePreservation.rules[0].jsonPath"},
		},
		"a quota without its gate": {
			new:      `{kind: FederatedResourceQuota, metadata: {name: q}, spec: {overall: {cpu: "1"}}}`,
			rules:    off("FederatedQuotaEnforcement"),
			warnings: []string{"spec.overall"},
		},
		"a quota of clusters needs no gate": {new: validQuota, rules: off("FederatedQuotaEnforcement")},
		"a service without its gate":        {new: validMCS, rules: allOff, warnings: []string{"spec"}},
		"taints without their gate":         {new: validTaints, rules: allOff, warnings: []string{"spec"}},
	})
}

func TestPartsOfAPlacementThatOthersOverruleAreWarnedAbout(t *testing.T) {
	placement := func(fields string) string { return cpp(`apiVersion: v1, kind: Pod`, `placement: {`+fields+`}`) }
	scheduling := func(strategy string) string { return placement(`replicaScheduling: {` + strategy + `}`) }
	spread := func(constraint, strategy string) string {
		return placement(`spreadConstraints: [{spreadByField: cluster, minGroups: 1}, ` + constraint + `], replicaScheduling: {` + strategy + `}`)
	}
	const (
		at       = "spec.placement."
		strategy = at + "replicaScheduling."
		weights  = `weightPreference: {staticWeightList: [{weight: 1, targetCluster: {clusterNames: [m1]}}]}`
		both     = `weightPreference: {dynamicWeight: AvailableReplicas, staticWeightList: [{weight: 1, targetCluster: {clusterNames: [m1]}}]}`
		divided  = `replicaSchedulingType: Divided, replicaDivisionPreference: `
	)
	runJudgements(t, map[string]judgement{
		"workload affinity without its gate": {
			new: placement(`workloadAffinity: {affinity: {groupByLabelKey: a}}`), rules: off("WorkloadAffinity"),
			warnings: []string{at + "workloadAffinity"},
		},
		"a label to spread by": {
			new:      placement(`spreadConstraints: [{spreadByLabel: x, minGroups: 1}]`),
			warnings: []string{at + "spreadConstraints[0].spreadByLabel"},
		},
		"zones and providers to spread by": {
			new:      spread(`{spreadByField: zone, minGroups: 1}, {spreadByField: provider, minGroups: 1}, {spreadByField: region, minGroups: 1}`, `replicaSchedulingType: Duplicated`),
			warnings: []string{at + "spreadConstraints[1].spreadByField", at + "spreadConstraints[2].spreadByField"},
		},
		"spreading with static weights":  {new: spread(``, divided+`Weighted, `+weights), warnings: []string{at + "spreadConstraints"}},
		"spreading with equal weights":   {new: spread(``, divided+`Weighted`), warnings: []string{at + "spreadConstraints"}},
		"spreading with dynamic weights": {new: spread(``, divided+`Weighted, weightPreference: {dynamicWeight: AvailableReplicas}`)},
		"spreading of aggregated ones":   {new: spread(``, divided+`Aggregated`)},
		"a division of duplicated replicas": {
			new:      scheduling(`replicaSchedulingType: Duplicated, replicaDivisionPreference: Weighted, ` + weights),
			warnings: []string{strategy + "replicaDivisionPreference", strategy + "weightPreference"},
		},
		"weights of aggregated replicas": {new: scheduling(divided + `Aggregated, ` + weights), warnings: []string{strategy + "weightPreference"}},
		"static weights beside dynamic":  {new: scheduling(divided + `Weighted, ` + both), warnings: []string{strategy + "weightPreference.staticWeightList"}},
		"static weights alone":           {new: scheduling(divided + `Weighted, ` + weights)},
		"names that no cluster can have": {new: placement(`clusterAffinity: {clusterNames: [m1, M1], exclude: [a_b]}`), warnings: []string{at + "clusterAffinity.clusterNames[1]", at + "clusterAffinity.exclude[0]"}},
		"names that are excluded":        {new: placement(`clusterAffinity: {clusterNames: [m1, m2], exclude: [m2]}`), warnings: []string{at + "clusterAffinity.clusterNames[1]"}},
		"a field that is compared with nothing": {
			new:      placement(`clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: In}]}}`),
			warnings: []string{at + "clusterAffinity.fieldSelector.matchExpressions[0].values"},
		},
		"an effect that clusters' taints do not have": {
			new:      placement(`clusterTolerations: [{key: a, operator: Exists, effect: PreferNoSchedule}, {key: a, operator: Exists}]`),
			warnings: []string{at + "clusterTolerations[0].effect"},
		},
		"a time for a taint that does not evict": {
			new:      placement(`clusterTolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 1}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 1}]`),
			warnings: []string{at + "clusterTolerations[0].tolerationSeconds"},
		},
	})
}
