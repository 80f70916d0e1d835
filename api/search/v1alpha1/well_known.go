package v1alpha1

// Kinds and plural resource names of this group.
const (
	// ResourceRegistryKind is the kind of a registry.
	ResourceRegistryKind = "ResourceRegistry"
	// ResourceRegistryResource is its plural, as in URLs.
	ResourceRegistryResource = "resourceregistries"

	// SearchResource is the resource under which cached objects are found.
	SearchResource = "search"
	// ProxyingResource is the resource under which the global proxy is found.
	ProxyingResource = "proxying"
)

// Keys of the Secret with the credentials of a back end.
const (
	// SecretKeyUsername holds the name of the user.
	SecretKeyUsername = "username"
	// SecretKeyPassword holds the password.
	SecretKeyPassword = "password"
)
