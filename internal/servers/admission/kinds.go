package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// kind is one row of the table of kinds.
type kind struct {
	// name is the name of the kind. The paths of the webhook end with the name in lower case.
	name          string
	resource      schema.GroupResource
	clusterScoped bool
	// withoutManagedFields is true for kinds that only controllers of this project write. The
	// managed fields of such an object are not needed, and are a third of its size.
	withoutManagedFields bool
	// notImplemented is true for kinds that are validated and stored, but that no component
	// implements. A test compares it with the tables of controllers.
	notImplemented bool
	// versions are constructors of empty objects by version.
	versions map[string]func() runtime.Object
	// mutate and validate are the entries in the webhook configurations. Nil means that the
	// configuration has no entry.
	mutate, validate *webhookEntry
}

// webhookEntry describes an entry of a webhook configuration.
type webhookEntry struct {
	name       string
	operations []admissionregistrationv1.OperationType
	// timeoutSeconds is the timeout of the webhook. 0 means the default.
	timeoutSeconds int32
	// hasSideEffects is true if a review has side effects unless it is a dry run.
	hasSideEffects bool
	// warnsOnly is true if a review returns only warnings. Then the API server stores the object
	// even if the webhook is unavailable.
	warnsOnly bool
}

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
)

// kinds returns the table of kinds, in the order of the webhook configurations.
func kinds() []kind {
	return slices.Concat(policyKinds(), workKinds(), configKinds(), autoscalingKinds(), networkingKinds(), kindsWithoutRules())
}

func policyKinds() []kind {
	const group = policyv1alpha1.GroupName
	return []kind{
		{
			name: "PropagationPolicy", resource: schema.GroupResource{Group: group, Resource: "propagationpolicies"},
			versions: v1alpha1Only(func() runtime.Object { return &policyv1alpha1.PropagationPolicy{} }),
			mutate:   newWebhookEntry("propagationpolicy", create, update), validate: newWebhookEntry("propagationpolicy", create, update),
		},
		{
			name: "ClusterPropagationPolicy", resource: schema.GroupResource{Group: group, Resource: "clusterpropagationpolicies"},
			clusterScoped: true,
			versions:      v1alpha1Only(func() runtime.Object { return &policyv1alpha1.ClusterPropagationPolicy{} }),
			mutate:        newWebhookEntry("clusterpropagationpolicy", create, update),
			validate:      newWebhookEntry("clusterpropagationpolicy", create, update),
		},
		{
			name: "OverridePolicy", resource: schema.GroupResource{Group: group, Resource: "overridepolicies"},
			versions: v1alpha1Only(func() runtime.Object { return &policyv1alpha1.OverridePolicy{} }),
			mutate:   newWebhookEntry("overridepolicy", create, update), validate: newWebhookEntry("overridepolicy", create, update),
		},
		{
			name: "ClusterOverridePolicy", resource: schema.GroupResource{Group: group, Resource: "clusteroverridepolicies"}, clusterScoped: true,
			versions: v1alpha1Only(func() runtime.Object { return &policyv1alpha1.ClusterOverridePolicy{} }),
			validate: newWebhookEntry("clusteroverridepolicy", create, update),
		},
		{
			name: "FederatedResourceQuota", resource: schema.GroupResource{Group: group, Resource: "federatedresourcequotas"},
			versions: v1alpha1Only(func() runtime.Object { return &policyv1alpha1.FederatedResourceQuota{} }),
			validate: newWebhookEntry("federatedresourcequota", create, update),
		},
		{
			name: "ClusterTaintPolicy", resource: schema.GroupResource{Group: group, Resource: "clustertaintpolicies"}, clusterScoped: true,
			versions: v1alpha1Only(func() runtime.Object { return &policyv1alpha1.ClusterTaintPolicy{} }),
			validate: newWebhookEntry("clustertaintpolicy", create, update),
		},
	}
}

func workKinds() []kind {
	const group = workv1alpha1.GroupName
	validateBinding := newWebhookEntry("resourcebinding", create, update)
	validateBinding.hasSideEffects = true
	return []kind{
		{
			name: "ResourceBinding", resource: schema.GroupResource{Group: group, Resource: "resourcebindings"}, withoutManagedFields: true,
			versions: map[string]func() runtime.Object{
				"v1alpha1": func() runtime.Object { return &workv1alpha1.ResourceBinding{} },
				"v1alpha2": func() runtime.Object { return &workv1alpha2.ResourceBinding{} },
			},
			mutate: newWebhookEntry("resourcebinding", create), validate: validateBinding,
		},
		{
			name: "ClusterResourceBinding", resource: schema.GroupResource{Group: group, Resource: "clusterresourcebindings"}, clusterScoped: true,
			withoutManagedFields: true,
			versions: map[string]func() runtime.Object{
				"v1alpha1": func() runtime.Object { return &workv1alpha1.ClusterResourceBinding{} },
				"v1alpha2": func() runtime.Object { return &workv1alpha2.ClusterResourceBinding{} },
			},
			mutate: newWebhookEntry("clusterresourcebinding", create), validate: newWebhookEntry("clusterresourcebinding", create, update),
		},
		{
			name: "Work", resource: schema.GroupResource{Group: group, Resource: "works"}, withoutManagedFields: true,
			versions: v1alpha1Only(func() runtime.Object { return &workv1alpha1.Work{} }),
			mutate:   newWebhookEntry("work", create, update),
		},
	}
}

func configKinds() []kind {
	const group = configv1alpha1.GroupName
	customization := newWebhookEntry("resourceinterpretercustomization", create, update)
	customization.timeoutSeconds = 10
	return []kind{
		{
			name:     "ResourceInterpreterWebhookConfiguration",
			resource: schema.GroupResource{Group: group, Resource: "resourceinterpreterwebhookconfigurations"}, clusterScoped: true,
			versions: v1alpha1Only(func() runtime.Object { return &configv1alpha1.ResourceInterpreterWebhookConfiguration{} }),
			validate: newWebhookEntry("config", create, update),
		},
		{
			name: "ResourceInterpreterCustomization", resource: schema.GroupResource{Group: group, Resource: "resourceinterpretercustomizations"},
			clusterScoped: true,
			versions:      v1alpha1Only(func() runtime.Object { return &configv1alpha1.ResourceInterpreterCustomization{} }),
			validate:      customization,
		},
	}
}

func autoscalingKinds() []kind {
	const group = autoscalingv1alpha1.GroupName
	return []kind{
		{
			name: "FederatedHPA", resource: schema.GroupResource{Group: group, Resource: "federatedhpas"}, notImplemented: true,
			versions: v1alpha1Only(func() runtime.Object { return &autoscalingv1alpha1.FederatedHPA{} }),
			mutate:   newWebhookEntry("autoscaling", create, update), validate: newWebhookEntry("federatedhpa", create, update),
		},
		{
			name: "CronFederatedHPA", resource: schema.GroupResource{Group: group, Resource: "cronfederatedhpas"}, notImplemented: true,
			versions: v1alpha1Only(func() runtime.Object { return &autoscalingv1alpha1.CronFederatedHPA{} }),
			validate: newWebhookEntry("cronfederatedhpa", create, update),
		},
	}
}

func networkingKinds() []kind {
	const group = networkingv1alpha1.GroupName
	return []kind{
		{
			name: "MultiClusterIngress", resource: schema.GroupResource{Group: group, Resource: "multiclusteringresses"}, notImplemented: true,
			versions: v1alpha1Only(func() runtime.Object { return &networkingv1alpha1.MultiClusterIngress{} }),
			validate: newWebhookEntry("multiclusteringress", create, update),
		},
		{
			name: "MultiClusterService", resource: schema.GroupResource{Group: group, Resource: "multiclusterservices"}, notImplemented: true,
			versions: v1alpha1Only(func() runtime.Object { return &networkingv1alpha1.MultiClusterService{} }),
			mutate:   newWebhookEntry("multiclusterservice", create, update), validate: newWebhookEntry("multiclusterservice", create, update),
		},
	}
}

// UnimplementedKinds returns the names of the kinds that are stored, but that no component implements.
func UnimplementedKinds() []string {
	var names []string
	for _, kind := range kinds() {
		if kind.notImplemented {
			names = append(names, kind.name)
		}
	}
	return names
}

// kindsWithoutRules returns kinds without rules. Upstream registers no webhook for these kinds.
func kindsWithoutRules() []kind {
	warning := func(name string, operations ...admissionregistrationv1.OperationType) *webhookEntry {
		e := newWebhookEntry(name, operations...)
		e.warnsOnly = true
		return e
	}
	return []kind{
		{
			name: "WorkloadRebalancer", resource: schema.GroupResource{Group: appsv1alpha1.GroupName, Resource: "workloadrebalancers"},
			clusterScoped: true,
			versions:      v1alpha1Only(func() runtime.Object { return &appsv1alpha1.WorkloadRebalancer{} }),
			validate:      warning("workloadrebalancer", create),
		},
		{
			name: "Remedy", resource: schema.GroupResource{Group: remedyv1alpha1.GroupName, Resource: "remedies"}, clusterScoped: true,
			versions: v1alpha1Only(func() runtime.Object { return &remedyv1alpha1.Remedy{} }),
			validate: warning("remedy", create, update),
		},
	}
}

// v1alpha1Only returns the versions of a kind whose only version is v1alpha1.
func v1alpha1Only(empty func() runtime.Object) map[string]func() runtime.Object {
	return map[string]func() runtime.Object{"v1alpha1": empty}
}

func newWebhookEntry(name string, operations ...admissionregistrationv1.OperationType) *webhookEntry {
	return &webhookEntry{name: name + clusterv1alpha1.DomainSuffix, operations: operations}
}

// handles reports whether the entry is for the given operation. It returns false if e is nil.
func (w *webhookEntry) handles(operation admission.Operation) bool {
	return w != nil && slices.Contains(w.operations, admissionregistrationv1.OperationType(operation))
}

func (k *kind) mutatePath() string   { return "/mutate-" + strings.ToLower(k.name) }
func (k *kind) validatePath() string { return "/validate-" + strings.ToLower(k.name) }

// decode returns the typed object, or nil if content is nil. As in the API server, unknown fields
// are ignored. applyDiff keeps unknown fields in the original.
func (k *kind) decode(version string, content map[string]any) (runtime.Object, error) {
	if content == nil {
		return nil, nil
	}
	empty, ok := k.versions[version]
	if !ok {
		return nil, &undecodableError{fmt.Errorf("%s has no version %q", k.name, version)}
	}
	object := empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err == nil {
		return object, nil
	}
	// The converter is fast, but its error does not name the invalid field. Decode again with a
	// decoder whose error names the field.
	object = empty()
	if err := decodeViaJSON(content, object); err != nil {
		return nil, &undecodableError{fmt.Errorf("decoding the %s: %w", k.name, err)}
	}
	return object, nil
}

func decodeViaJSON(content map[string]any, object runtime.Object) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, object)
}
