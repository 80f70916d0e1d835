package v1alpha1

// The kinds of this group and their plural resource names.
const (
	// ResourceKindResourceInterpreterCustomization is the kind of a customization.
	ResourceKindResourceInterpreterCustomization = "ResourceInterpreterCustomization"
	// ResourcePluralResourceInterpreterCustomization is the plural resource name of a
	// customization, as in URLs.
	ResourcePluralResourceInterpreterCustomization = "resourceinterpretercustomizations"

	// ResourceKindResourceInterpreterWebhookConfiguration is the kind of a webhook configuration.
	ResourceKindResourceInterpreterWebhookConfiguration = "ResourceInterpreterWebhookConfiguration"
	// ResourcePluralResourceInterpreterWebhookConfiguration is the plural resource name of a
	// webhook configuration, as in URLs.
	ResourcePluralResourceInterpreterWebhookConfiguration = "resourceinterpreterwebhookconfigurations"
)

// InterpreterContextVersion is the only version of ResourceInterpreterContext
// that the control plane supports. A webhook must list it to be called.
const InterpreterContextVersion = "v1alpha1"
