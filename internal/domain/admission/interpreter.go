package admission

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/script"
)

const (
	minWebhookTimeoutSeconds = 1
	maxWebhookTimeoutSeconds = 30
	wildcard                 = "*"
)

// supportedOperations returns the operations that an interpreter webhook's rule may contain.
func supportedOperations() []configv1alpha1.InterpreterOperation {
	return []configv1alpha1.InterpreterOperation{
		configv1alpha1.InterpreterOperationAll,
		configv1alpha1.InterpreterOperationInterpretReplica,
		configv1alpha1.InterpreterOperationInterpretComponent,
		configv1alpha1.InterpreterOperationInterpretDependency,
		configv1alpha1.InterpreterOperationReviseReplica,
		configv1alpha1.InterpreterOperationRetain,
		configv1alpha1.InterpreterOperationAggregateStatus,
		configv1alpha1.InterpreterOperationInterpretStatus,
		configv1alpha1.InterpreterOperationInterpretHealth,
	}
}

func (r *report) validateInterpreterWebhooks(configuration *configv1alpha1.ResourceInterpreterWebhookConfiguration) {
	names := uniqueValues[string]{}
	for i := range configuration.Webhooks {
		webhook, path := &configuration.Webhooks[i], field.NewPath("webhooks").Index(i)
		r.addErrors(validation.IsFullyQualifiedDomainName(path.Child("name"), webhook.Name)...)
		names.add(r, path.Child("name"), webhook.Name)
		r.validateClientConfig(path.Child("clientConfig"), &webhook.ClientConfig)
		if seconds := webhook.TimeoutSeconds; seconds != nil && (*seconds < minWebhookTimeoutSeconds || *seconds > maxWebhookTimeoutSeconds) {
			r.addErrors(field.Invalid(path.Child("timeoutSeconds"), *seconds,
				validation.InclusiveRangeError(minWebhookTimeoutSeconds, maxWebhookTimeoutSeconds)))
		}
		r.validateContextVersions(path.Child("interpreterContextVersions"), webhook.InterpreterContextVersions)
		for j := range webhook.Rules {
			r.validateInterpreterRule(path.Child("rules").Index(j), &webhook.Rules[j])
		}
	}
}

func (r *report) validateClientConfig(path *field.Path, config *admissionregistrationv1.WebhookClientConfig) {
	switch {
	case (config.URL == nil) == (config.Service == nil):
		r.addErrors(field.Required(path, "exactly one of url and service is needed"))
	case config.URL != nil:
		r.validateWebhookURL(path.Child("url"), *config.URL)
	default:
		r.validateWebhookService(path.Child("service"), config.Service)
	}
}

func (r *report) validateWebhookURL(path *field.Path, text string) {
	parsed, err := url.Parse(text)
	if err != nil {
		r.addErrors(field.Invalid(path, text, "must be a URL: "+err.Error()))
		return
	}
	if parsed.Scheme != "https" {
		r.addErrors(field.Invalid(path, text, "the scheme must be https"))
	}
	if parsed.Host == "" {
		r.addErrors(field.Invalid(path, text, "a host is needed"))
	}
	if parsed.User != nil || parsed.Fragment != "" || parsed.RawQuery != "" {
		r.addErrors(field.Invalid(path, text, "must have no user, fragment or query"))
	}
}

func (r *report) validateWebhookService(path *field.Path, service *admissionregistrationv1.ServiceReference) {
	if service.Name == "" {
		r.addErrors(field.Required(path.Child("name"), "the name of the Service is needed"))
	}
	if service.Namespace == "" {
		r.addErrors(field.Required(path.Child("namespace"), "the namespace of the Service is needed"))
	}
	if service.Path != nil && *service.Path != "" && !strings.HasPrefix(*service.Path, "/") {
		r.addErrors(field.Invalid(path.Child("path"), *service.Path, "must begin with '/'"))
	}
	if service.Port != nil {
		r.addInvalid(path.Child("port"), *service.Port, validation.IsValidPortNum(int(*service.Port)))
	}
}

func (r *report) validateContextVersions(path *field.Path, versions []string) {
	if len(versions) == 0 {
		r.addErrors(field.Required(path, "must contain "+configv1alpha1.InterpreterContextVersion))
		return
	}
	seen := uniqueValues[string]{}
	for i, version := range versions {
		seen.add(r, path.Index(i), version)
		r.addInvalid(path.Index(i), version, validation.IsDNS1035Label(version))
	}
	if !seen[configv1alpha1.InterpreterContextVersion] {
		r.addErrors(field.Invalid(path, versions, "must contain "+configv1alpha1.InterpreterContextVersion))
	}
}

func (r *report) validateInterpreterRule(path *field.Path, rule *configv1alpha1.RuleWithOperations) {
	names := make([]string, 0, len(rule.Operations))
	for i, operation := range rule.Operations {
		names = append(names, string(operation))
		if !slices.Contains(supportedOperations(), operation) {
			r.addErrors(field.NotSupported(path.Child("operations").Index(i), operation, supportedOperations()))
		}
	}
	r.validateWildcards(path.Child("operations"), names)
	r.validateWildcards(path.Child("apiGroups"), rule.APIGroups)
	r.validateWildcards(path.Child("apiVersions"), rule.APIVersions)
	r.validateWildcards(path.Child("kinds"), rule.Kinds)
	// Groups may contain an empty string, which is the name of the core group. Versions and kinds may
	// not.
	r.validateNonEmpty(path.Child("apiVersions"), rule.APIVersions)
	r.validateNonEmpty(path.Child("kinds"), rule.Kinds)
}

func (r *report) validateWildcards(path *field.Path, values []string) {
	if len(values) == 0 {
		r.addErrors(field.Required(path, "at least one value is needed; use * for all"))
	}
	if len(values) > 1 && slices.Contains(values, wildcard) {
		r.addErrors(field.Invalid(path, values, "* must be the only value"))
	}
}

func (r *report) validateNonEmpty(path *field.Path, values []string) {
	for i, value := range values {
		if value == "" {
			r.addErrors(field.Required(path.Index(i), "must not be empty"))
		}
	}
}

// validateCustomization validates that all scripts compile, and that no other customization of the same
// kind has a script for the same operation. For operations whose results are merged, several
// customizations of a kind may have a script.
func (r Options) validateCustomization(report *report, object *configv1alpha1.ResourceInterpreterCustomization) {
	var others []*configv1alpha1.ResourceInterpreterCustomization
	if r.Customizations != nil {
		others = r.Customizations()
	}
	for _, operation := range interpreter.ScriptOperations() {
		text, path := operation.Script(&object.Spec.Customizations), specPath().Child("customizations", operation.Field)
		if text == "" {
			continue
		}
		if err := script.Check(text); err != nil {
			// Omit the script from the error, because it can be long.
			report.addErrors(field.Invalid(path.Child("luaScript"), field.OmitValueType{}, err.Error()))
		}
		for _, other := range others {
			if operation.Mergeable || other.Name == object.Name || other.Spec.Target != object.Spec.Target ||
				operation.Script(&other.Spec.Customizations) == "" {
				continue
			}
			report.addErrors(field.Forbidden(path, fmt.Sprintf("customization %s has a script for this and the same target", other.Name)))
		}
	}
}
