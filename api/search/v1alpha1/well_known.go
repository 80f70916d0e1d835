package v1alpha1

// Kinds and plural resource names of this group.
const (
	// ResourceRegistryKind is the kind of a registry.
	ResourceRegistryKind = "ResourceRegistry"
	// ResourceRegistryResource is the plural resource name of a registry, as in
	// URLs.
	ResourceRegistryResource = "resourceregistries"

	// SearchResource is the resource that serves cached objects.
	SearchResource = "search"
	// ProxyingResource is the resource that serves the global proxy.
	ProxyingResource = "proxying"
)

// Keys of the Secret with the credentials of a back end.
const (
	// SecretKeyUsername holds the name of the user.
	SecretKeyUsername = "username"
	// SecretKeyPassword holds the password.
	SecretKeyPassword = "password"
)
