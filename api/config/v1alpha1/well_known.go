package v1alpha1

// The names by which clients address the kinds of this group.
const (
	// ResourceKindResourceInterpreterCustomization is the kind of a customization.
	ResourceKindResourceInterpreterCustomization = "ResourceInterpreterCustomization"
	// ResourcePluralResourceInterpreterCustomization is its plural, as in URLs.
	ResourcePluralResourceInterpreterCustomization = "resourceinterpretercustomizations"

	// ResourceKindResourceInterpreterWebhookConfiguration is the kind of a webhook configuration.
	ResourceKindResourceInterpreterWebhookConfiguration = "ResourceInterpreterWebhookConfiguration"
	// ResourcePluralResourceInterpreterWebhookConfiguration is its plural, as in URLs.
	ResourcePluralResourceInterpreterWebhookConfiguration = "resourceinterpreterwebhookconfigurations"
)

// InterpreterContextVersion is the only version of ResourceInterpreterContext
// that the control plane speaks. A webhook must list it to be called.
const InterpreterContextVersion = "v1alpha1"
