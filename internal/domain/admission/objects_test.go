package admission

import (
	"strings"
	"testing"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

const (
	validBinding = `{kind: ResourceBinding, metadata: {name: b, namespace: shop, annotations: {resourcebinding.karmada.io/dependencies: '[{"apiVersion":"v1","kind":"Secret","namespace":"shop","name":"s"}]'}}, spec: {resource: {apiVersion: v1, kind: Pod, namespace: shop, name: p}, components: [{name: a, replicas: 1}, {name: b, replicas: 1}]}}`
	validWork    = `{kind: Work, metadata: {name: w, namespace: karmada-es-m1}, spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c, uid: x, labels: {a: b}}, status: {}}]}}}`

	validWebhooks      = `{kind: ResourceInterpreterWebhookConfiguration, metadata: {name: c}, webhooks: [{name: w.example.com, clientConfig: {url: "https://h/p"}, interpreterContextVersions: [v1alpha1], timeoutSeconds: 30, rules: [{operations: [InterpretReplica], apiGroups: [""], apiVersions: ["*"], kinds: [Pod]}]}]}`
	validCustomization = `{kind: ResourceInterpreterCustomization, metadata: {name: c}, spec: {target: {apiVersion: v1, kind: Pod}, customizations: {retention: {luaScript: "return 1"}, dependencyInterpretation: {luaScript: "return 2"}}}}`

	validFederatedHPA        = `{kind: FederatedHPA, metadata: {name: h, namespace: shop}, spec: {scaleTargetRef: {kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 2, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}, {type: ContainerResource, containerResource: {container: c, name: cpu, target: {type: AverageValue, averageValue: "1"}}}, {type: Pods, pods: {metric: {name: q}, target: {type: AverageValue, averageValue: "1"}}}, {type: Object, object: {describedObject: {kind: Service, name: s}, metric: {name: q}, target: {type: Value, value: "1"}}}], behavior: {scaleUp: {stabilizationWindowSeconds: 3600, selectPolicy: Min, policies: [{type: Pods, value: 1, periodSeconds: 1800}]}}}}`
	validCron                = `{kind: CronFederatedHPA, metadata: {name: c, namespace: shop}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, rules: [{name: a, schedule: "* * * * *", targetReplicas: 0}]}}`
	validIngress             = `{kind: MultiClusterIngress, metadata: {name: i, namespace: shop}, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}, tls: [{hosts: ["*.a.b"], secretName: s}], rules: [{host: a.b, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {name: http}}}}, {pathType: ImplementationSpecific, backend: {resource: {apiGroup: a.b, kind: K, name: thing}}}]}}]}}`
	validMultiClusterService = `{kind: MultiClusterService, metadata: {name: s, namespace: shop}, spec: {types: [CrossCluster], providerClusters: [{name: m1}], consumerClusters: [{name: m2}]}}`
)

func TestBindingRules(t *testing.T) {
	binding := func(kind, rest string) string { return `{kind: ` + kind + `, metadata: {name: b}, ` + rest + `}` }
	const twice = `spec: {resource: {apiVersion: v1, kind: Pod, name: p}, components: [{name: a, replicas: 1}, {name: a, replicas: 1}, {name: "", replicas: 1}]}`
	on := Options{MultiplePodTemplates: true}
	runValidationCases(t, map[string]validationCase{
		"a valid binding": {new: validBinding, rules: on},
		"components have unique names": {
			new: binding("ResourceBinding", twice), rules: on,
			errors: []string{"FieldValueDuplicate spec.components[1].name", "FieldValueRequired spec.components[2].name"},
		},
		"components are not validated without the feature": {new: binding("ResourceBinding", twice)},
		"cluster bindings are not validated": {
			new:   `{kind: ClusterResourceBinding, metadata: {name: b, annotations: {resourcebinding.karmada.io/dependencies: "{}"}}, ` + twice + `}`,
			rules: on,
		},
		"dependencies are a JSON array": {
			new:    `{kind: ResourceBinding, metadata: {name: b, annotations: {resourcebinding.karmada.io/dependencies: "{}"}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`,
			errors: []string{"FieldValueInvalid metadata.annotations[resourcebinding.karmada.io/dependencies]"},
		},
	})
	runDefaultingCases(t, map[string]defaultingCase{
		"a binding gets an id": {
			new:  `{kind: ResourceBinding, metadata: {name: b}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`,
			want: `{kind: ResourceBinding, metadata: {name: b, labels: {resourcebinding.karmada.io/permanent-id: new-id}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`,
		},
		"a new binding does not keep the id of another one": {
			new:  `{kind: ResourceBinding, metadata: {name: b, labels: {resourcebinding.karmada.io/permanent-id: other}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`,
			want: `{kind: ResourceBinding, metadata: {name: b, labels: {resourcebinding.karmada.io/permanent-id: new-id}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`,
		},
		"a stored binding keeps its id": {
			old:  `{kind: ResourceBinding, metadata: {name: b, labels: {resourcebinding.karmada.io/permanent-id: id}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`,
			new:  `{kind: ResourceBinding, metadata: {name: b, labels: {resourcebinding.karmada.io/permanent-id: id}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`,
			want: `{kind: ResourceBinding, metadata: {name: b, labels: {resourcebinding.karmada.io/permanent-id: id}}, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}`,
		},
		"a cluster binding gets an id": {
			new:  `{kind: ClusterResourceBinding, metadata: {name: b}, spec: {resource: {apiVersion: v1, kind: Node, name: p}}}`,
			want: `{kind: ClusterResourceBinding, metadata: {name: b, labels: {clusterresourcebinding.karmada.io/permanent-id: new-id}}, spec: {resource: {apiVersion: v1, kind: Node, name: p}}}`,
		},
		"a multi-cluster service gets an id": {
			new:  `{kind: MultiClusterService, metadata: {name: s}, spec: {types: [CrossCluster]}}`,
			want: `{kind: MultiClusterService, metadata: {name: s, labels: {multiclusterservice.karmada.io/permanent-id: new-id}}, spec: {types: [CrossCluster]}}`,
		},
		"a Work and its manifests get defaults": {
			new:  validWork,
			want: `{kind: Work, metadata: {name: w, namespace: karmada-es-m1, labels: {work.karmada.io/permanent-id: new-id}}, spec: {workload: {manifests: [{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"resourcetemplate.karmada.io/managed-annotations":"resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels","resourcetemplate.karmada.io/managed-labels":"a,work.karmada.io/permanent-id"},"labels":{"a":"b","work.karmada.io/permanent-id":"new-id"},"name":"c"}}]}}}`,
		},
	})
}

func TestWorkRules(t *testing.T) {
	runValidationCases(t, map[string]validationCase{
		"a Work in an execution namespace": {new: validWork},
		"a Work that no cluster applies": {
			new:      `{kind: Work, metadata: {name: w, namespace: shop}, spec: {}}`,
			warnings: []string{"metadata.namespace"},
		},
	})
}

func TestInterpreterWebhookRules(t *testing.T) {
	webhook := func(rest string) string {
		return `{kind: ResourceInterpreterWebhookConfiguration, metadata: {name: c}, webhooks: [{name: w.example.com, ` + rest + `}]}`
	}
	client := func(config string) string {
		return webhook(`clientConfig: ` + config + `, interpreterContextVersions: [v1alpha1]`)
	}
	const url = `clientConfig: {url: "https://h"}, `
	rule := func(rule string) string {
		return webhook(url + `interpreterContextVersions: [v1alpha1], rules: [` + rule + `]`)
	}
	runValidationCases(t, map[string]validationCase{
		"a valid configuration": {new: validWebhooks},
		"names are domain names": {
			new:    `{kind: ResourceInterpreterWebhookConfiguration, webhooks: [{name: w, ` + url + `interpreterContextVersions: [v1alpha1]}]}`,
			errors: []string{"FieldValueInvalid webhooks[0].name"},
		},
		"names are unique": {
			new:    `{kind: ResourceInterpreterWebhookConfiguration, webhooks: [{name: w.x.io, ` + url + `interpreterContextVersions: [v1alpha1]}, {name: w.x.io, ` + url + `interpreterContextVersions: [v1alpha1]}]}`,
			errors: []string{"FieldValueDuplicate webhooks[1].name"},
		},
		"a client needs an address":         {new: client(`{}`), errors: []string{"FieldValueRequired webhooks[0].clientConfig"}},
		"a client has one address":          {new: client(`{url: "https://h", service: {name: a, namespace: b}}`), errors: []string{"FieldValueRequired webhooks[0].clientConfig"}},
		"a URL uses https":                  {new: client(`{url: "http://h"}`), errors: []string{"FieldValueInvalid webhooks[0].clientConfig.url"}},
		"a URL has a host and no query":     {new: client(`{url: "https:///p?q#f"}`), errors: []string{"FieldValueInvalid webhooks[0].clientConfig.url", "FieldValueInvalid webhooks[0].clientConfig.url"}},
		"a URL is valid":                    {new: client(`{url: ":"}`), errors: []string{"FieldValueInvalid webhooks[0].clientConfig.url"}},
		"a service is complete":             {new: client(`{service: {name: "", namespace: "", path: p, port: 0}}`), errors: []string{"FieldValueRequired webhooks[0].clientConfig.service.name", "FieldValueRequired webhooks[0].clientConfig.service.namespace", "FieldValueInvalid webhooks[0].clientConfig.service.path", "FieldValueInvalid webhooks[0].clientConfig.service.port"}},
		"a service has a default port":      {new: client(`{service: {name: a, namespace: b, path: /p}}`)},
		"a timeout of 0":                    {new: webhook(url + `interpreterContextVersions: [v1alpha1], timeoutSeconds: 0`), errors: []string{"FieldValueInvalid webhooks[0].timeoutSeconds"}},
		"a timeout of 31":                   {new: webhook(url + `interpreterContextVersions: [v1alpha1], timeoutSeconds: 31`), errors: []string{"FieldValueInvalid webhooks[0].timeoutSeconds"}},
		"a version is needed":               {new: webhook(url + `interpreterContextVersions: []`), errors: []string{"FieldValueRequired webhooks[0].interpreterContextVersions"}},
		"the supported version is required": {new: webhook(url + `interpreterContextVersions: [v1, v1]`), errors: []string{"FieldValueDuplicate webhooks[0].interpreterContextVersions[1]", "FieldValueInvalid webhooks[0].interpreterContextVersions"}},
		"versions are labels":               {new: webhook(url + `interpreterContextVersions: [v1alpha1, 1v]`), errors: []string{"FieldValueInvalid webhooks[0].interpreterContextVersions[1]"}},
		"rules are not empty":               {new: rule(`{operations: [], apiGroups: [], apiVersions: [], kinds: []}`), errors: []string{"FieldValueRequired webhooks[0].rules[0].operations", "FieldValueRequired webhooks[0].rules[0].apiGroups", "FieldValueRequired webhooks[0].rules[0].apiVersions", "FieldValueRequired webhooks[0].rules[0].kinds"}},
		"the wildcard is the only value":    {new: rule(`{operations: ["*", Retain], apiGroups: ["*", a], apiVersions: ["*", v1], kinds: ["*", K]}`), errors: []string{"FieldValueInvalid webhooks[0].rules[0].operations", "FieldValueInvalid webhooks[0].rules[0].apiGroups", "FieldValueInvalid webhooks[0].rules[0].apiVersions", "FieldValueInvalid webhooks[0].rules[0].kinds"}},
		"versions and kinds are not empty":  {new: rule(`{operations: ["*"], apiGroups: [""], apiVersions: [""], kinds: [""]}`), errors: []string{"FieldValueRequired webhooks[0].rules[0].apiVersions[0]", "FieldValueRequired webhooks[0].rules[0].kinds[0]"}},
		"an unknown operation":              {new: rule(`{operations: [Prune], apiGroups: [""], apiVersions: [v1], kinds: [K]}`), errors: []string{"FieldValueNotSupported webhooks[0].rules[0].operations[0]"}},
	})
}

func TestCustomizationRules(t *testing.T) {
	stored := func(name, kind, scripts string) Options {
		other := &configv1alpha1.ResourceInterpreterCustomization{}
		other.Name = name
		other.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "v1", Kind: kind}
		switch scripts {
		case "retention":
			other.Spec.Customizations.Retention = &configv1alpha1.LocalValueRetention{LuaScript: "function Retain() end"}
		case "dependency":
			other.Spec.Customizations.DependencyInterpretation = &configv1alpha1.DependencyInterpretation{}
		case "health":
			other.Spec.Customizations.HealthInterpretation = &configv1alpha1.HealthInterpretation{}
		}
		return Options{Customizations: func() []*configv1alpha1.ResourceInterpreterCustomization {
			return []*configv1alpha1.ResourceInterpreterCustomization{other}
		}}
	}
	broken := strings.Replace(validCustomization, "return 2", "return return", 1)
	const retention = "spec.customizations.retention"
	runValidationCases(t, map[string]validationCase{
		"a valid customization":               {new: validCustomization},
		"scripts compile":                     {new: broken, errors: []string{"FieldValueInvalid spec.customizations.dependencyInterpretation.luaScript"}},
		"two scripts for one operation":       {new: validCustomization, rules: stored("d", "Pod", "retention"), errors: []string{"FieldValueForbidden " + retention}},
		"scripts for different operations":    {new: validCustomization, rules: stored("d", "Pod", "health")},
		"two scripts for dependencies":        {new: validCustomization, rules: stored("d", "Pod", "dependency")},
		"a script for another kind":           {new: validCustomization, rules: stored("d", "Node", "retention")},
		"an update of the same customization": {new: validCustomization, rules: stored("c", "Pod", "retention")},
	})
}
