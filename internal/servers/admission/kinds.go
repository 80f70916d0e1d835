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
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// kind is one row of the table: what there is to ask about one kind.
type kind struct {
	// name of the kind; in lower case it ends the paths of the webhook.
	name     string
	resource schema.GroupResource
	cluster  bool
	// untracked objects are written by controllers of this project alone: nobody
	// has to be told who owns which field, and knowing it would be a third of what
	// such an object costs.
	untracked bool
	// unattended objects are stored and judged, and no component acts on them.
	unattended bool
	// versions make empty objects.
	versions map[string]func() runtime.Object
	// mutate and validate are the entries in the configurations; nil for none.
	mutate, validate *entry
}

// entry is one question as an API server is told to ask it.
type entry struct {
	name       string
	operations []admissionregistrationv1.OperationType
	// timeoutSeconds; 0 means the default.
	timeoutSeconds int32
	// writesOnReview: answering has side effects, but not for dry runs.
	writesOnReview bool
	// advises: the answer holds warnings and never a refusal, so that the API server
	// stores the object without an answer too.
	advises bool
}

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
)

// kinds is the table, in the order of the configurations.
func kinds() []kind {
	return slices.Concat(policyKinds(), workKinds(), configKinds(), autoscalingKinds(), networkingKinds(), unattendedKinds())
}

func policyKinds() []kind {
	const group = policyv1alpha1.GroupName
	return []kind{
		{
			name: "PropagationPolicy", resource: schema.GroupResource{Group: group, Resource: "propagationpolicies"},
			versions: one(func() runtime.Object { return &policyv1alpha1.PropagationPolicy{} }),
			mutate:   asked("propagationpolicy", create, update), validate: asked("propagationpolicy", create, update),
		},
		{
			name: "ClusterPropagationPolicy", resource: schema.GroupResource{Group: group, Resource: "clusterpropagationpolicies"}, cluster: true,
			versions: one(func() runtime.Object { return &policyv1alpha1.ClusterPropagationPolicy{} }),
			mutate:   asked("clusterpropagationpolicy", create, update), validate: asked("clusterpropagationpolicy", create, update),
		},
		{
			name: "OverridePolicy", resource: schema.GroupResource{Group: group, Resource: "overridepolicies"},
			versions: one(func() runtime.Object { return &policyv1alpha1.OverridePolicy{} }),
			mutate:   asked("overridepolicy", create, update), validate: asked("overridepolicy", create, update),
		},
		{
			name: "ClusterOverridePolicy", resource: schema.GroupResource{Group: group, Resource: "clusteroverridepolicies"}, cluster: true,
			versions: one(func() runtime.Object { return &policyv1alpha1.ClusterOverridePolicy{} }),
			validate: asked("clusteroverridepolicy", create, update),
		},
		{
			name: "FederatedResourceQuota", resource: schema.GroupResource{Group: group, Resource: "federatedresourcequotas"}, unattended: true,
			versions: one(func() runtime.Object { return &policyv1alpha1.FederatedResourceQuota{} }),
			validate: asked("federatedresourcequota", create, update),
		},
		{
			name: "ClusterTaintPolicy", resource: schema.GroupResource{Group: group, Resource: "clustertaintpolicies"}, cluster: true,
			versions: one(func() runtime.Object { return &policyv1alpha1.ClusterTaintPolicy{} }),
			validate: asked("clustertaintpolicy", create, update),
		},
	}
}

func workKinds() []kind {
	const group = workv1alpha1.GroupName
	quota := asked("resourcebinding", create, update)
	quota.writesOnReview = true
	return []kind{
		{
			name: "ResourceBinding", resource: schema.GroupResource{Group: group, Resource: "resourcebindings"}, untracked: true,
			versions: map[string]func() runtime.Object{
				"v1alpha1": func() runtime.Object { return &workv1alpha1.ResourceBinding{} },
				"v1alpha2": func() runtime.Object { return &workv1alpha2.ResourceBinding{} },
			},
			mutate: asked("resourcebinding", create), validate: quota,
		},
		{
			name: "ClusterResourceBinding", resource: schema.GroupResource{Group: group, Resource: "clusterresourcebindings"}, cluster: true, untracked: true,
			versions: map[string]func() runtime.Object{
				"v1alpha1": func() runtime.Object { return &workv1alpha1.ClusterResourceBinding{} },
				"v1alpha2": func() runtime.Object { return &workv1alpha2.ClusterResourceBinding{} },
			},
			mutate: asked("clusterresourcebinding", create), validate: asked("clusterresourcebinding", create, update),
		},
		{
			name: "Work", resource: schema.GroupResource{Group: group, Resource: "works"}, untracked: true,
			versions: one(func() runtime.Object { return &workv1alpha1.Work{} }),
			mutate:   asked("work", create, update),
		},
	}
}

func configKinds() []kind {
	const group = configv1alpha1.GroupName
	compiling := asked("resourceinterpretercustomization", create, update)
	compiling.timeoutSeconds = 10
	return []kind{
		{
			name: "ResourceInterpreterWebhookConfiguration", resource: schema.GroupResource{Group: group, Resource: "resourceinterpreterwebhookconfigurations"}, cluster: true, unattended: true,
			versions: one(func() runtime.Object { return &configv1alpha1.ResourceInterpreterWebhookConfiguration{} }),
			validate: asked("config", create, update),
		},
		{
			name: "ResourceInterpreterCustomization", resource: schema.GroupResource{Group: group, Resource: "resourceinterpretercustomizations"}, cluster: true, unattended: true,
			versions: one(func() runtime.Object { return &configv1alpha1.ResourceInterpreterCustomization{} }),
			validate: compiling,
		},
	}
}

func autoscalingKinds() []kind {
	const group = autoscalingv1alpha1.GroupName
	return []kind{
		{
			name: "FederatedHPA", resource: schema.GroupResource{Group: group, Resource: "federatedhpas"}, unattended: true,
			versions: one(func() runtime.Object { return &autoscalingv1alpha1.FederatedHPA{} }),
			mutate:   asked("autoscaling", create, update), validate: asked("federatedhpa", create, update),
		},
		{
			name: "CronFederatedHPA", resource: schema.GroupResource{Group: group, Resource: "cronfederatedhpas"}, unattended: true,
			versions: one(func() runtime.Object { return &autoscalingv1alpha1.CronFederatedHPA{} }),
			validate: asked("cronfederatedhpa", create, update),
		},
	}
}

func networkingKinds() []kind {
	const group = networkingv1alpha1.GroupName
	return []kind{
		{
			name: "MultiClusterIngress", resource: schema.GroupResource{Group: group, Resource: "multiclusteringresses"}, unattended: true,
			versions: one(func() runtime.Object { return &networkingv1alpha1.MultiClusterIngress{} }),
			validate: asked("multiclusteringress", create, update),
		},
		{
			name: "MultiClusterService", resource: schema.GroupResource{Group: group, Resource: "multiclusterservices"}, unattended: true,
			versions: one(func() runtime.Object { return &networkingv1alpha1.MultiClusterService{} }),
			mutate:   asked("multiclusterservice", create, update), validate: asked("multiclusterservice", create, update),
		},
	}
}

// unattendedKinds have no rules. The reference registers no webhook for them.
func unattendedKinds() []kind {
	advised := func(name string) *entry {
		e := asked(name, create)
		e.advises = true
		return e
	}
	return []kind{
		{
			name: "WorkloadRebalancer", resource: schema.GroupResource{Group: appsv1alpha1.GroupName, Resource: "workloadrebalancers"}, cluster: true, unattended: true,
			versions: one(func() runtime.Object { return &appsv1alpha1.WorkloadRebalancer{} }),
			validate: advised("workloadrebalancer"),
		},
		{
			name: "Remedy", resource: schema.GroupResource{Group: remedyv1alpha1.GroupName, Resource: "remedies"}, cluster: true, unattended: true,
			versions: one(func() runtime.Object { return &remedyv1alpha1.Remedy{} }),
			validate: advised("remedy"),
		},
	}
}

// one is for a kind that is served in the first version alone.
func one(empty func() runtime.Object) map[string]func() runtime.Object {
	return map[string]func() runtime.Object{"v1alpha1": empty}
}

func asked(name string, operations ...admissionregistrationv1.OperationType) *entry {
	return &entry{name: name + ".karmada.io", operations: operations}
}

// asksAt reports whether the question is asked at that operation.
func (e *entry) asksAt(operation admission.Operation) bool {
	return e != nil && slices.Contains(e.operations, admissionregistrationv1.OperationType(operation))
}

func (k *kind) mutatePath() string   { return "/mutate-" + strings.ToLower(k.name) }
func (k *kind) validatePath() string { return "/validate-" + strings.ToLower(k.name) }

// decode returns the typed object, nil for no content. Unknown fields are left
// out, as the API server does; transplant keeps them in the original.
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
	// The converter is fast, but does not say which field it could not read.
	object = empty()
	if err := decodeSlowly(content, object); err != nil {
		return nil, &undecodableError{fmt.Errorf("decoding the %s: %w", k.name, err)}
	}
	return object, nil
}

func decodeSlowly(content map[string]any, object runtime.Object) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, object)
}
