package admission

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
)

// The tests of this file compare a CustomResourceDefinition with admission. Before admission is
// called, the definition rejects what its CEL rules can detect. It must not reject anything that
// admission accepts.

func kindByName(t testing.TB, name string) *kind {
	t.Helper()
	for _, k := range kinds() {
		if k.name == name {
			return &k
		}
	}
	t.Fatalf("no row for kind %s", name)
	return nil
}

// validateBoth applies the defaults of the rules to an object. Then it returns the errors of the
// definition and the errors of the rules.
func validateBoth(t testing.TB, d *definition, k *kind, object, old *unstructured.Unstructured) (bySchema field.ErrorList, byRules error) {
	t.Helper()
	r, oldContent := reviewer(), unstructuredContent(old)
	defaulting.Default(object.Object, d.structural)
	if err := r.applyDefaults(k, "v1alpha1", object.Object, oldContent); err != nil {
		t.Fatal(err)
	}
	bySchema = d.validate(t, object.Object, oldContent)
	_, byRules = r.validate(t.Context(), k, "v1alpha1", object.Object, oldContent, false)
	return bySchema, byRules
}

// objectWithSpec returns a valid object with the given spec. An object of any kind has the labels
// that policies require.
func objectWithSpec(kind, group, spec string) string {
	return fmt.Sprintf(`{apiVersion: %s.karmada.io/v1alpha1, kind: %s, metadata: {name: s, namespace: shop, labels: {propagationpolicy.karmada.io/permanent-id: new-id}}, spec: {%s}}`, group, kind, spec)
}

func policySpec(fields string) string {
	return objectWithSpec("PropagationPolicy", "policy", `resourceSelectors: [{apiVersion: v1, kind: Pod}], `+fields)
}

func placement(fields string) string { return policySpec(`placement: {` + fields + `}`) }

func TestDefinitionsAgreeWithAdmission(t *testing.T) {
	application := func(fields string) string {
		return policySpec(`propagateDeps: true, failover: {application: {` + fields + `}}`)
	}
	override := func(fields string) string { return objectWithSpec("OverridePolicy", "policy", fields) }
	service := func(fields string) string { return objectWithSpec("MultiClusterService", "networking", fields) }
	hpa := func(fields string) string {
		return objectWithSpec("FederatedHPA", "autoscaling", `scaleTargetRef: {kind: Deployment, name: web}, `+fields)
	}
	behavior := func(fields string) string { return hpa(`maxReplicas: 2, behavior: {scaleDown: {` + fields + `}}`) }
	cron := func(version, kind, rules string) string {
		return objectWithSpec("CronFederatedHPA", "autoscaling", `scaleTargetRef: {apiVersion: `+version+`, kind: `+kind+`, name: x}, rules: [`+rules+`]`)
	}
	workload := func(rule string) string {
		return cron("apps/v1", "Deployment", `{name: a, schedule: "* * * * *", `+rule+`}`)
	}
	bounds := func(rule string) string {
		return cron("autoscaling.karmada.io/v1alpha1", "FederatedHPA", `{name: a, schedule: "* * * * *", `+rule+`}`)
	}
	webhook := func(fields string) string {
		return `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterWebhookConfiguration, metadata: {name: c}, webhooks: [{name: w.example.com, ` + fields + `}]}`
	}
	const (
		divided = `, replicaScheduling: {replicaDivisionPreference: Aggregated}`
		rule    = `overrideRules: [{overriders: {}}], `
		url     = `clientConfig: {url: "https://h"}, `
	)
	tests := map[string]struct {
		old, new string
		// at is the field that the error of the definition names. It is empty if the object is
		// valid.
		at string
	}{
		"a valid policy":                         {new: placement(`clusterAffinity: {clusterNames: [m1], fieldSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}}, clusterTolerations: [{key: a, operator: Exists}], spreadConstraints: [{spreadByField: cluster, maxGroups: 2}, {spreadByField: region, maxGroups: 0}], workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: b}}`)},
		"empty fields":                           {new: placement(`clusterAffinities: [], clusterTolerations: [], spreadConstraints: []`)},
		"preemption without a name":              {new: policySpec(`preemption: Always`), at: "spec.resourceSelectors"},
		"preemption with an empty name":          {new: objectWithSpec("PropagationPolicy", "policy", `resourceSelectors: [{apiVersion: v1, kind: Pod, name: ""}], preemption: Always`), at: "spec.resourceSelectors"},
		"preemption with a name":                 {new: objectWithSpec("PropagationPolicy", "policy", `resourceSelectors: [{apiVersion: v1, kind: Pod, name: p}], preemption: Always`)},
		"another scheduler":                      {old: policySpec(`schedulerName: a`), new: policySpec(`schedulerName: b`), at: "spec.schedulerName"},
		"the same scheduler":                     {old: policySpec(`schedulerName: a`), new: policySpec(`schedulerName: a, priority: 1`)},
		"failover without dependencies":          {new: policySpec(`failover: {application: {decisionConditions: {}}}`), at: "spec.propagateDeps"},
		"failover with a negative toleration":    {new: application(`decisionConditions: {tolerationSeconds: -1}`), at: "spec.failover.application.decisionConditions.tolerationSeconds"},
		"failover without a grace period":        {new: application(`decisionConditions: {}, purgeMode: Gracefully, gracePeriodSeconds: 0`), at: "spec.failover.application.gracePeriodSeconds"},
		"a grace period without graceful mode":   {new: application(`decisionConditions: {}, purgeMode: Never, gracePeriodSeconds: 1`), at: "spec.failover.application.gracePeriodSeconds"},
		"a graceful failover gets defaults":      {new: application(`decisionConditions: {}, purgeMode: Gracefully`)},
		"suspension of all and of some clusters": {new: policySpec(`suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [m1]}}`), at: "spec.suspension.dispatchingOnClusters.clusterNames"},
		"suspension of some clusters":            {new: policySpec(`suspension: {dispatching: false, dispatchingOnClusters: {clusterNames: [m1]}}`)},
		"one affinity and several":               {new: placement(`clusterAffinity: {}, clusterAffinities: [{affinityName: a}]`), at: "spec.placement.clusterAffinities"},
		"one affinity and none":                  {new: placement(`clusterAffinity: {}, clusterAffinities: []`)},
		"an affinity twice":                      {new: placement(`clusterAffinities: [{affinityName: a}, {affinityName: b}, {affinityName: a}]`), at: "spec.placement.clusterAffinities"},
		"an unknown field of clusters":           {new: placement(`clusterAffinity: {fieldSelector: {matchExpressions: [{key: name, operator: In, values: [a]}]}}`), at: "spec.placement.clusterAffinity"},
		"an unknown field of clusters in a term": {new: placement(`clusterAffinities: [{affinityName: a, fieldSelector: {matchExpressions: [{key: zone, operator: Exists}]}}]`), at: "spec.placement.clusterAffinities"},
		"overflow of static weights":             {new: placement(`clusterAffinities: [{affinityName: a, clusterNames: [m1], overflowAffinities: [{affinityName: b}]}], replicaScheduling: {}`), at: "spec.placement.clusterAffinities"},
		"overflow of all clusters":               {new: placement(`clusterAffinities: [{affinityName: a, overflowAffinities: [{affinityName: b}]}]` + divided), at: "spec.placement.clusterAffinities"},
		"overflow of some clusters":              {new: placement(`clusterAffinities: [{affinityName: a, exclude: [m1], overflowAffinities: [{affinityName: b}]}]` + divided)},
		"overflow of dynamic weights":            {new: placement(`clusterAffinities: [{affinityName: a, exclude: [m1], overflowAffinities: [{affinityName: b}]}], replicaScheduling: {replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}`)},
		"a toleration that compares":             {new: placement(`clusterTolerations: [{key: a, operator: Exists}, {key: b, operator: Gt, value: "1"}]`), at: "spec.placement.clusterTolerations"},
		"a field and a label to spread by":       {new: placement(`spreadConstraints: [{spreadByField: cluster, spreadByLabel: a}]`), at: "spec.placement.spreadConstraints"},
		"a field and an empty label":             {new: placement(`spreadConstraints: [{spreadByField: cluster, spreadByLabel: ""}]`)},
		"a negative number of groups":            {new: placement(`spreadConstraints: [{spreadByField: cluster, minGroups: -1}]`), at: "spec.placement.spreadConstraints"},
		"maxGroups less than minGroups":          {new: placement(`spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 1}]`), at: "spec.placement.spreadConstraints"},
		"maxGroups without limit":                {new: placement(`spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 0}]`)},
		"a field without clusters":               {new: placement(`spreadConstraints: [{spreadByField: region}]`), at: "spec.placement.spreadConstraints"},
		"a field twice":                          {new: placement(`spreadConstraints: [{spreadByField: cluster}, {spreadByField: cluster}]`), at: "spec.placement.spreadConstraints"},
		"a label alone":                          {new: placement(`spreadConstraints: [{spreadByLabel: a}]`)},
		"one label for both affinities":          {new: placement(`workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: a}}`), at: "spec.placement.workloadAffinity"},

		"a deprecated target with rules":       {new: override(rule + `targetCluster: {}`), at: "spec.targetCluster"},
		"deprecated overriders with rules":     {new: override(rule + `overriders: {plaintext: [{path: /a, operator: remove}]}`), at: "spec.overriders"},
		"empty overriders with rules":          {new: override(rule + `overriders: {plaintext: []}`)},
		"ignored overriders with rules":        {new: override(rule + `overriders: {fieldOverrider: [{fieldPath: /a}]}`)},
		"deprecated fields alone":              {new: override(`overrideRules: [], targetCluster: {}, overriders: {plaintext: [{path: /a, operator: remove}]}`)},
		"a deprecated target of unknown field": {new: override(`targetCluster: {fieldSelector: {matchExpressions: [{key: name, operator: In}]}}`), at: "spec.targetCluster"},

		"an assignment to no cluster":   {new: objectWithSpec("FederatedResourceQuota", "policy", `overall: {cpu: 1}, staticAssignments: [{clusterName: "", hard: {cpu: 1}}]`), at: "spec.staticAssignments"},
		"an assignment to some cluster": {new: objectWithSpec("FederatedResourceQuota", "policy", `overall: {cpu: 1}, staticAssignments: [{clusterName: m1, hard: {cpu: 1}}]`)},

		"a valid service":                {new: service(`types: [CrossCluster], ports: [{port: 65535}], providerClusters: [{name: m1}], consumerClusters: [{name: m2}]`)},
		"a service with two types":       {new: service(`types: [CrossCluster, LoadBalancer]`), at: "spec.types"},
		"a service with an unknown type": {new: service(`types: [Other]`), at: "spec.types"},
		"a service with a changed type":  {old: service(`types: [CrossCluster]`), new: service(`types: [LoadBalancer]`), at: "spec.types"},
		"an invalid port":                {new: service(`types: [], ports: [{port: 0}]`), at: "spec.ports"},
		"a provider without a name":      {new: service(`types: [], providerClusters: [{name: ""}]`), at: "spec.providerClusters"},
		"a consumer with a long name":    {new: service(`types: [], consumerClusters: [{name: a23456789a23456789a23456789a23456789a23456789a234}]`), at: "spec.consumerClusters"},

		"an ingress without a backend":    {new: objectWithSpec("MultiClusterIngress", "networking", ``), at: "spec"},
		"an ingress with two backends":    {new: objectWithSpec("MultiClusterIngress", "networking", `defaultBackend: {service: {name: s, port: {number: 1}}, resource: {kind: K, name: k}}`), at: "spec.defaultBackend"},
		"an ingress to a service":         {new: objectWithSpec("MultiClusterIngress", "networking", `defaultBackend: {service: {name: s, port: {number: 1}}}`)},
		"an ingress to a service by host": {new: objectWithSpec("MultiClusterIngress", "networking", `rules: [{host: a.b}]`)},

		"an autoscaler":                       {new: hpa(`minReplicas: 1, maxReplicas: 2, behavior: {}`)},
		"an autoscaler without a target name": {new: objectWithSpec("FederatedHPA", "autoscaling", `scaleTargetRef: {kind: Deployment, name: ""}, maxReplicas: 1`), at: "spec.scaleTargetRef"},
		"an autoscaler with minReplicas 0":    {new: hpa(`minReplicas: 0, maxReplicas: 1`), at: "spec.minReplicas"},
		"an autoscaler with maxReplicas 0":    {new: hpa(`maxReplicas: 0`), at: "spec.maxReplicas"},
		"an autoscaler between 3 and 2":       {new: hpa(`minReplicas: 3, maxReplicas: 2`), at: "spec.maxReplicas"},
		"a metric of an unsupported type":     {new: hpa(`maxReplicas: 2, metrics: [{type: External, external: {metric: {name: q}, target: {type: Value, value: 1}}}]`), at: "spec.metrics"},
		"a metric of another type":            {new: hpa(`maxReplicas: 2, metrics: [{type: Resource, pods: {metric: {name: q}, target: {type: AverageValue, averageValue: 1}}}]`), at: "spec.metrics"},
		"a metric without a source":           {new: hpa(`maxReplicas: 2, metrics: [{type: ContainerResource}]`), at: "spec.metrics"},
		"a window of a week":                  {new: behavior(`stabilizationWindowSeconds: 604800`), at: "spec.behavior.scaleDown.stabilizationWindowSeconds"},
		"an unknown selectPolicy":             {new: behavior(`selectPolicy: Any`), at: "spec.behavior.scaleDown.selectPolicy"},
		"a policy with a period of 0":         {new: behavior(`policies: [{type: Pods, value: 1, periodSeconds: 0}]`), at: "spec.behavior.scaleDown"},
		"a schedule of a workload":            {new: workload(`targetReplicas: 0`)},
		"a schedule without replicas":         {new: workload(`targetMinReplicas: 1`), at: "spec.rules"},
		"a schedule of a FederatedHPA":        {new: bounds(`targetMinReplicas: 1, targetMaxReplicas: 1`)},
		"a schedule without bounds":           {new: bounds(`targetReplicas: 1`), at: "spec.rules"},
		"a schedule with bounds of 0":         {new: bounds(`targetMaxReplicas: 0`), at: "spec.rules"},
		"a schedule with bounds in reverse":   {new: bounds(`targetMinReplicas: 2, targetMaxReplicas: 1`), at: "spec.rules"},
		"a schedule of an unsupported kind":   {new: cron("autoscaling.karmada.io/v1alpha1", "CronFederatedHPA", ``), at: "spec.scaleTargetRef.kind"},
		"a schedule with a rule twice":        {new: cron("apps/v1", "Deployment", `{name: a, schedule: "* * * * *", targetReplicas: 1}, {name: a, schedule: "* * * * *", targetReplicas: 1}`), at: "spec.rules"},

		"an interpreter":                      {new: webhook(url + `interpreterContextVersions: [v2, v1alpha1], timeoutSeconds: 30`)},
		"an interpreter with two addresses":   {new: webhook(`clientConfig: {url: "https://h", service: {name: a, namespace: b}}, interpreterContextVersions: [v1alpha1]`), at: "webhooks[0].clientConfig"},
		"an interpreter with timeout 0":       {new: webhook(url + `interpreterContextVersions: [v1alpha1], timeoutSeconds: 0`), at: "webhooks[0].timeoutSeconds"},
		"an interpreter of no version":        {new: webhook(url + `interpreterContextVersions: []`), at: "webhooks[0].interpreterContextVersions"},
		"an interpreter of another version":   {new: webhook(url + `interpreterContextVersions: [v2]`), at: "webhooks[0].interpreterContextVersions"},
		"two interpreters with the same name": {new: webhook(url + `interpreterContextVersions: [v1alpha1]}, {name: w.example.com, ` + url + `interpreterContextVersions: [v1alpha1]`), at: "webhooks"},
	}
	all := definitions(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object, old := parse(t, test.new), parse(t, test.old)
			kind := object.GetKind()
			bySchema, byRules := validateBoth(t, newDefinition(t, all[kind]), kindByName(t, kind), object, old)
			if (byRules != nil) != (test.at != "") {
				t.Errorf("admission returns: %v", byRules)
			}
			if (len(bySchema) > 0) != (test.at != "") {
				t.Errorf("the definition returns: %v", bySchema)
			}
			for _, err := range bySchema {
				if err.Field != test.at {
					t.Errorf("the definition names %s, want %s", err.Field, test.at)
				}
			}
		})
	}
}

// optionalPart is a list of parts of an object. A test object contains none or one of these parts.
type optionalPart []string

func (o optionalPart) draw(t *rapid.T, name string) string {
	return rapid.SampledFrom(append([]string{""}, o...)).Draw(t, name)
}

func TestDefinitionsAcceptWhatAdmissionAccepts(t *testing.T) {
	affinity := optionalPart{`clusterNames: [m1]`, `clusterNames: []`, `exclude: [m1]`, `labelSelector: {}`, `fieldSelector: {}`, `fieldSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}`, `fieldSelector: {matchExpressions: [{key: name, operator: Exists}]}`}
	constraint := optionalPart{`spreadByField: cluster`, `spreadByField: region, minGroups: 2`, `spreadByLabel: a`, `spreadByField: cluster, spreadByLabel: ""`, `minGroups: 3, maxGroups: 2`, `maxGroups: -1`, `spreadByField: cluster, maxGroups: 1`}
	grace := optionalPart{`, gracePeriodSeconds: 1`, `, gracePeriodSeconds: 0`}
	mode := optionalPart{`, purgeMode: Gracefully`, `, purgeMode: Directly`, `, purgeMode: Never`}
	scheduling := optionalPart{`{}`, `{replicaSchedulingType: Duplicated}`, `{replicaDivisionPreference: Aggregated}`, `{weightPreference: {dynamicWeight: AvailableReplicas}}`, `{weightPreference: {staticWeightList: []}}`}
	suspension := optionalPart{`{}`, `{dispatching: true}`, `{dispatching: true, dispatchingOnClusters: {}}`, `{dispatching: true, dispatchingOnClusters: {clusterNames: [m1]}}`, `{dispatchingOnClusters: {clusterNames: [m1]}}`}
	preemption := optionalPart{`preemption: Always, `, `preemption: Never, `, `propagateDeps: true, `}
	overriders := optionalPart{`plaintext: [{path: /a, operator: remove}]`, `fieldOverrider: [{fieldPath: /a}]`, `imageOverrider: []`}

	list := func(t *rapid.T, name string, item func(i int) string) string {
		items := make([]string, rapid.IntRange(0, 10).Draw(t, name))
		for i := range items {
			items[i] = "{" + item(i) + "}"
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	field := func(name, value string) string {
		if value == "" {
			return ""
		}
		return name + ": " + value + ", "
	}
	braces := func(text string) string { return "{" + text + "}" }
	propagation := func(t *rapid.T) string {
		terms := list(t, "terms", func(int) string {
			overflow := list(t, "overflow", func(i int) string { return fmt.Sprintf("affinityName: o%d", i) })
			return field("affinityName", rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "affinityName")) +
				field("overflowAffinities", overflow) + affinity.draw(t, "term")
		})
		placed := field("clusterAffinities", terms) + field("replicaScheduling", scheduling.draw(t, "scheduling")) +
			field("spreadConstraints", list(t, "constraints", func(int) string { return constraint.draw(t, "constraint") }))
		if rapid.Bool().Draw(t, "single") {
			placed += field("clusterAffinity", braces(affinity.draw(t, "affinity")))
		}
		failover := ""
		if rapid.Bool().Draw(t, "failover") {
			failover = `failover: {application: {decisionConditions: {}` + mode.draw(t, "mode") + grace.draw(t, "grace") + `}}, `
		}
		return policySpec(preemption.draw(t, "preemption") + failover + field("suspension", suspension.draw(t, "suspension")) + field("placement", braces(placed)))
	}
	override := func(t *rapid.T) string {
		fields := field("overrideRules", list(t, "rules", func(int) string { return `overriders: {}` }))
		if rapid.Bool().Draw(t, "target") {
			fields += field("targetCluster", braces(affinity.draw(t, "affinity")))
		}
		return objectWithSpec("OverridePolicy", "policy", fields+field("overriders", braces(overriders.draw(t, "overriders"))))
	}

	all := definitions(t)
	for kind, draw := range map[string]func(*rapid.T) string{"PropagationPolicy": propagation, "OverridePolicy": override} {
		t.Run(kind, func(t *testing.T) {
			d, k := newDefinition(t, all[kind]), kindByName(t, kind)
			rapid.Check(t, func(r *rapid.T) {
				text := draw(r)
				bySchema, byRules := validateBoth(t, d, k, parse(t, text), nil)
				if len(bySchema) > 0 && byRules == nil {
					r.Fatalf("only the definition rejects\n%s\n%v", text, bySchema)
				}
			})
		})
	}
}
