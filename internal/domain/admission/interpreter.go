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
)

const (
	minWebhookTimeoutSeconds = 1
	maxWebhookTimeoutSeconds = 30
	wildcard                 = "*"
)

// operations are those that a rule may name.
func operations() []configv1alpha1.InterpreterOperation {
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

func (r *report) interpreterWebhooks(configuration *configv1alpha1.ResourceInterpreterWebhookConfiguration) {
	names := unique[string]{}
	for i := range configuration.Webhooks {
		webhook, at := &configuration.Webhooks[i], field.NewPath("webhooks").Index(i)
		r.add(validation.IsFullyQualifiedDomainName(at.Child("name"), webhook.Name)...)
		names.see(r, at.Child("name"), webhook.Name)
		r.clientConfig(at.Child("clientConfig"), &webhook.ClientConfig)
		if seconds := webhook.TimeoutSeconds; seconds != nil && (*seconds < minWebhookTimeoutSeconds || *seconds > maxWebhookTimeoutSeconds) {
			r.add(field.Invalid(at.Child("timeoutSeconds"), *seconds,
				validation.InclusiveRangeError(minWebhookTimeoutSeconds, maxWebhookTimeoutSeconds)))
		}
		r.contextVersions(at.Child("interpreterContextVersions"), webhook.InterpreterContextVersions)
		for j := range webhook.Rules {
			r.interpreterRule(at.Child("rules").Index(j), &webhook.Rules[j])
		}
	}
}

func (r *report) clientConfig(path *field.Path, config *admissionregistrationv1.WebhookClientConfig) {
	switch {
	case (config.URL == nil) == (config.Service == nil):
		r.add(field.Required(path, "exactly one of url and service is needed"))
	case config.URL != nil:
		r.webhookURL(path.Child("url"), *config.URL)
	default:
		r.webhookService(path.Child("service"), config.Service)
	}
}

func (r *report) webhookURL(path *field.Path, text string) {
	parsed, err := url.Parse(text)
	if err != nil {
		r.add(field.Invalid(path, text, "must be a URL: "+err.Error()))
		return
	}
	if parsed.Scheme != "https" {
		r.add(field.Invalid(path, text, "the scheme must be https"))
	}
	if parsed.Host == "" {
		r.add(field.Invalid(path, text, "a host is needed"))
	}
	if parsed.User != nil || parsed.Fragment != "" || parsed.RawQuery != "" {
		r.add(field.Invalid(path, text, "must have no user, fragment or query"))
	}
}

func (r *report) webhookService(path *field.Path, service *admissionregistrationv1.ServiceReference) {
	if service.Name == "" {
		r.add(field.Required(path.Child("name"), "the Service is found by name"))
	}
	if service.Namespace == "" {
		r.add(field.Required(path.Child("namespace"), "the Service is found by namespace"))
	}
	if service.Path != nil && *service.Path != "" && !strings.HasPrefix(*service.Path, "/") {
		r.add(field.Invalid(path.Child("path"), *service.Path, "must begin with '/'"))
	}
	if service.Port != nil {
		r.invalid(path.Child("port"), *service.Port, validation.IsValidPortNum(int(*service.Port)))
	}
}

func (r *report) contextVersions(path *field.Path, versions []string) {
	if len(versions) == 0 {
		r.add(field.Required(path, "must contain "+configv1alpha1.InterpreterContextVersion))
		return
	}
	seen := unique[string]{}
	for i, version := range versions {
		seen.see(r, path.Index(i), version)
		r.invalid(path.Index(i), version, validation.IsDNS1035Label(version))
	}
	if !seen[configv1alpha1.InterpreterContextVersion] {
		r.add(field.Invalid(path, versions, "must contain "+configv1alpha1.InterpreterContextVersion))
	}
}

func (r *report) interpreterRule(path *field.Path, rule *configv1alpha1.RuleWithOperations) {
	names := make([]string, 0, len(rule.Operations))
	for i, operation := range rule.Operations {
		names = append(names, string(operation))
		if !slices.Contains(operations(), operation) {
			r.add(field.NotSupported(path.Child("operations").Index(i), operation, operations()))
		}
	}
	r.wildcards(path.Child("operations"), names)
	r.wildcards(path.Child("apiGroups"), rule.APIGroups)
	r.wildcards(path.Child("apiVersions"), rule.APIVersions)
	r.wildcards(path.Child("kinds"), rule.Kinds)
	// An empty group is the core group; versions and kinds are never empty.
	r.nonEmpty(path.Child("apiVersions"), rule.APIVersions)
	r.nonEmpty(path.Child("kinds"), rule.Kinds)
}

func (r *report) wildcards(path *field.Path, values []string) {
	if len(values) == 0 {
		r.add(field.Required(path, "name something, or * for all"))
	}
	if len(values) > 1 && slices.Contains(values, wildcard) {
		r.add(field.Invalid(path, values, "* stands alone"))
	}
}

func (r *report) nonEmpty(path *field.Path, values []string) {
	for i, value := range values {
		if value == "" {
			r.add(field.Required(path.Index(i), "must not be empty"))
		}
	}
}

// script is one script of a customization.
type script struct {
	field string
	text  string
	// shared: several customizations of a kind may have this script; their
	// answers are put together.
	shared bool
}

// scripts lists what is given, in the order of the fields.
func scripts(rules *configv1alpha1.CustomizationRules) []script {
	var list []script
	if s := rules.Retention; s != nil {
		list = append(list, script{field: "retention", text: s.LuaScript})
	}
	if s := rules.ReplicaResource; s != nil {
		list = append(list, script{field: "replicaResource", text: s.LuaScript})
	}
	if s := rules.ComponentResource; s != nil {
		list = append(list, script{field: "componentResource", text: s.LuaScript})
	}
	if s := rules.ReplicaRevision; s != nil {
		list = append(list, script{field: "replicaRevision", text: s.LuaScript})
	}
	if s := rules.StatusReflection; s != nil {
		list = append(list, script{field: "statusReflection", text: s.LuaScript})
	}
	if s := rules.StatusAggregation; s != nil {
		list = append(list, script{field: "statusAggregation", text: s.LuaScript})
	}
	if s := rules.HealthInterpretation; s != nil {
		list = append(list, script{field: "healthInterpretation", text: s.LuaScript})
	}
	if s := rules.DependencyInterpretation; s != nil {
		list = append(list, script{field: "dependencyInterpretation", text: s.LuaScript, shared: true})
	}
	return list
}

// customization wants scripts that compile, and no second answer to a question
// that another customization of the same kind answers.
func (r Rules) customization(report *report, object *configv1alpha1.ResourceInterpreterCustomization) {
	path := specPath().Child("customizations")
	own := scripts(&object.Spec.Customizations)
	if r.CompileScript != nil {
		for _, s := range own {
			if err := r.CompileScript(s.text); err != nil {
				report.add(field.Invalid(path.Child(s.field, "luaScript"), s.text, err.Error()))
			}
		}
	}
	if r.Customizations == nil {
		return
	}
	for _, other := range r.Customizations() {
		if other.Name == object.Name || other.Spec.Target != object.Spec.Target {
			continue
		}
		for _, s := range scripts(&other.Spec.Customizations) {
			if !s.shared && slices.ContainsFunc(own, func(o script) bool { return o.field == s.field }) {
				report.add(field.Forbidden(path.Child(s.field), fmt.Sprintf(
					"customization %s has a script for this and the same target", other.Name)))
			}
		}
	}
}
