package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

const (
	// MutatingConfigurationName names what mutates; see Configurations.
	MutatingConfigurationName = "mutating-config"
	// ValidatingConfigurationName names what validates; see Configurations.
	ValidatingConfigurationName = "validating-config"

	deletionEntryName     = "resourcedeletionprotection.karmada.io"
	deletionPath          = "/validate-resourcedeletionprotection"
	defaultTimeoutSeconds = 3
)

// ClientConfig tells an API server how to reach a path of the webhook.
type ClientConfig func(path string) admissionregistrationv1.WebhookClientConfig

// Configurations returns what tells an API server to ask the webhook.
func Configurations(reach ClientConfig) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
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
			mutating.Webhooks = append(mutating.Webhooks, mutatingWebhook(&kind, reach))
		}
		if kind.validate != nil {
			validating.Webhooks = append(validating.Webhooks, validatingWebhook(&kind, reach))
		}
	}
	validating.Webhooks = append(validating.Webhooks, agentWebhook(reach), deletionWebhook(reach))
	return mutating, validating
}

func mutatingWebhook(k *kind, reach ClientConfig) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    k.mutate.name,
		ClientConfig:            reach(k.mutatePath()),
		Rules:                   []admissionregistrationv1.RuleWithOperations{k.rule(k.mutate)},
		FailurePolicy:           new(admissionregistrationv1.Fail),
		SideEffects:             new(k.mutate.sideEffects()),
		TimeoutSeconds:          new(k.mutate.timeout()),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func validatingWebhook(k *kind, reach ClientConfig) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    k.validate.name,
		ClientConfig:            reach(k.validatePath()),
		Rules:                   []admissionregistrationv1.RuleWithOperations{k.rule(k.validate)},
		FailurePolicy:           new(k.validate.failurePolicy()),
		SideEffects:             new(k.validate.sideEffects()),
		TimeoutSeconds:          new(k.validate.timeout()),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// deletionWebhook is asked about objects of any kind that carry the label, and
// about no others, for else nothing could be deleted while the webhook is away.
func deletionWebhook(reach ClientConfig) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         deletionEntryName,
		ClientConfig: reach(deletionPath),
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

func (k *kind) rule(e *entry) admissionregistrationv1.RuleWithOperations {
	scope := admissionregistrationv1.NamespacedScope
	if k.cluster {
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

func (e *entry) timeout() int32 {
	if e.timeoutSeconds != 0 {
		return e.timeoutSeconds
	}
	return defaultTimeoutSeconds
}

func (e *entry) failurePolicy() admissionregistrationv1.FailurePolicyType {
	if e.advises {
		return admissionregistrationv1.Ignore
	}
	return admissionregistrationv1.Fail
}

func (e *entry) sideEffects() admissionregistrationv1.SideEffectClass {
	if e.writesOnReview {
		return admissionregistrationv1.SideEffectClassNoneOnDryRun
	}
	return admissionregistrationv1.SideEffectClassNone
}
