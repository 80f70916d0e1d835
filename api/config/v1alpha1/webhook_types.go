package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterWebhookConfiguration registers HTTPS endpoints that
// interpret kinds for the control plane. An endpoint is called only for
// operations for which no ResourceInterpreterCustomization has a script.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpreterwebhookconfigurations,scope=Cluster,categories={karmada-io}
// +kubebuilder:storageversion
type ResourceInterpreterWebhookConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Webhooks lists the endpoints. When the rules of several endpoints match,
	// in any configurations, only the one whose "<configuration name>/<webhook
	// name>" sorts first is called.
	// +required
	// +kubebuilder:validation:XValidation:rule="[0,1,2,3].all(i, i >= size(self) || ![0,1,2,3].exists(j, j > i && j < size(self) && self[j].name == self[i].name))",message="every name of a webhook is there once",reason=FieldValueDuplicate
	Webhooks []ResourceInterpreterWebhook `json:"webhooks"`
}

// ResourceInterpreterWebhook is one endpoint and the operations for which it is
// called.
//
// +kubebuilder:validation:XValidation:rule="has(self.clientConfig.url) != has(self.clientConfig.service)",message="exactly one of url and service is needed",reason=FieldValueRequired,fieldPath=".clientConfig"
// +kubebuilder:validation:XValidation:rule="!has(self.timeoutSeconds) || (self.timeoutSeconds >= 1 && self.timeoutSeconds <= 30)",message="must be between 1 and 30",fieldPath=".timeoutSeconds"
// +kubebuilder:validation:XValidation:rule="size(self.interpreterContextVersions) > 8 || [0,1,2,3,4,5,6,7].exists(i, i < size(self.interpreterContextVersions) && self.interpreterContextVersions[i] == 'v1alpha1')",message="must contain v1alpha1",reason=FieldValueRequired,fieldPath=".interpreterContextVersions"
type ResourceInterpreterWebhook struct {
	// Name identifies the webhook. It must be a fully qualified domain name,
	// such as "workloads.example.com", and unique within the configuration.
	// +required
	Name string `json:"name"`

	// ClientConfig is the address of the endpoint: an https URL or a Service.
	// Exactly one of them must be given. The port of a Service defaults to 443.
	// +required
	ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`

	// Rules lists the operations and kinds that the endpoint supports. The
	// endpoint is called when any of its rules matches.
	// +optional
	Rules []RuleWithOperations `json:"rules,omitempty"`

	// TimeoutSeconds limits one call, from 1 to 30 seconds. A call that takes
	// longer fails. Defaults to 10 seconds.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// InterpreterContextVersions lists the versions of
	// ResourceInterpreterContext that the endpoint understands, the preferred
	// one first. The list must contain "v1alpha1".
	// +required
	InterpreterContextVersions []string `json:"interpreterContextVersions"`
}

// RuleWithOperations matches when both the operation and the kind match.
type RuleWithOperations struct {
	// Operations lists the operations to match: InterpretReplica,
	// InterpretComponent, InterpretDependency, ReviseReplica, Retain,
	// AggregateStatus, InterpretStatus, InterpretHealth. A single "*" stands
	// for all of them.
	// +required
	Operations []InterpreterOperation `json:"operations"`

	// Rule matches the kind.
	Rule `json:",inline"`
}

// Rule matches a kind by group, version and name; all three must match.
type Rule struct {
	// APIGroups lists the groups to match; the empty string is the core
	// group. A single "*" matches every group.
	// +required
	APIGroups []string `json:"apiGroups"`

	// APIVersions lists the versions to match, without their group. A single
	// "*" matches every version.
	// +required
	APIVersions []string `json:"apiVersions"`

	// Kinds lists the kinds to match, such as "Workload". A single "*" matches
	// every kind.
	// +required
	Kinds []string `json:"kinds"`
}

// ResourceInterpreterWebhookConfigurationList is a list of webhook
// configurations.
//
// +kubebuilder:object:root=true
type ResourceInterpreterWebhookConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items holds the webhook configurations.
	Items []ResourceInterpreterWebhookConfiguration `json:"items"`
}
