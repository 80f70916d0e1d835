package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

const (
	// MutatingConfigurationName is the name of the MutatingWebhookConfiguration; see
	// Configurations.
	MutatingConfigurationName = "mutating-config"
	// ValidatingConfigurationName is the name of the ValidatingWebhookConfiguration; see
	// Configurations.
	ValidatingConfigurationName = "validating-config"

	deletionPath          = "/validate-resourcedeletionprotection"
	defaultTimeoutSeconds = 3
)

// ClientConfig returns the client configuration for a path of the webhook.
type ClientConfig func(path string) admissionregistrationv1.WebhookClientConfig

// Configurations returns the objects that register the webhook with an API server.
func Configurations(clientConfig ClientConfig) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: MutatingConfigurationName, Labels: map[string]string{"app": "karmada-webhook"}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ValidatingConfigurationName, Labels: map[string]string{"app": "karmada-webhook"}},
	}
	for _, kind := range kinds() {
		if kind.mutate != nil {
			mutating.Webhooks = append(mutating.Webhooks, mutatingWebhook(&kind, clientConfig))
		}
		if kind.validate != nil {
			validating.Webhooks = append(validating.Webhooks, validatingWebhook(&kind, clientConfig))
		}
	}
	validating.Webhooks = append(validating.Webhooks, agentWebhook(clientConfig), deletionWebhook(clientConfig))
	return mutating, validating
}

func mutatingWebhook(k *kind, clientConfig ClientConfig) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    k.mutate.name,
		ClientConfig:            clientConfig(k.mutatePath()),
		Rules:                   []admissionregistrationv1.RuleWithOperations{k.rule(k.mutate)},
		FailurePolicy:           new(admissionregistrationv1.Fail),
		SideEffects:             new(k.mutate.sideEffects()),
		TimeoutSeconds:          new(k.mutate.timeout()),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func validatingWebhook(k *kind, clientConfig ClientConfig) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    k.validate.name,
		ClientConfig:            clientConfig(k.validatePath()),
		Rules:                   []admissionregistrationv1.RuleWithOperations{k.rule(k.validate)},
		FailurePolicy:           new(k.validate.failurePolicy()),
		SideEffects:             new(k.validate.sideEffects()),
		TimeoutSeconds:          new(k.validate.timeout()),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// deletionWebhook returns the webhook for deletions of objects with the protection label. Its
// selector excludes all other objects, which could otherwise not be deleted while the webhook is
// unavailable.
func deletionWebhook(clientConfig ClientConfig) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         workv1alpha2.DeletionProtectionAdmission,
		ClientConfig: clientConfig(deletionPath),
		ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: workv1alpha2.DeletionProtectionLabel, Operator: metav1.LabelSelectorOpExists},
		}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"},
				Scope: new(admissionregistrationv1.AllScopes),
			},
		}},
		FailurePolicy:           new(admissionregistrationv1.Fail),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(defaultTimeoutSeconds)),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func (k *kind) rule(e *webhookEntry) admissionregistrationv1.RuleWithOperations {
	scope := admissionregistrationv1.NamespacedScope
	if k.clusterScoped {
		scope = admissionregistrationv1.ClusterScope
	}
	return admissionregistrationv1.RuleWithOperations{
		Operations: e.operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{k.resource.Group}, APIVersions: []string{"*"}, Resources: []string{k.resource.Resource},
			Scope: &scope,
		},
	}
}

func (w *webhookEntry) timeout() int32 {
	if w.timeoutSeconds != 0 {
		return w.timeoutSeconds
	}
	return defaultTimeoutSeconds
}

func (w *webhookEntry) failurePolicy() admissionregistrationv1.FailurePolicyType {
	if w.warnsOnly {
		return admissionregistrationv1.Ignore
	}
	return admissionregistrationv1.Fail
}

func (w *webhookEntry) sideEffects() admissionregistrationv1.SideEffectClass {
	if w.hasSideEffects {
		return admissionregistrationv1.SideEffectClassNoneOnDryRun
	}
	return admissionregistrationv1.SideEffectClassNone
}
