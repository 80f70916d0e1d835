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

// Names of the resource "search". Each of them is one way to find objects.
const (
	// SearchCache reads objects by their native path.
	SearchCache = "cache"
	// SearchQuery finds objects by a query.
	SearchQuery = "query"
	// SearchOpenSearch is accepted and answers with an empty body.
	SearchOpenSearch = "opensearch"
)

// ProxyingStrict is the name of the resource "proxying" that asks for strict
// mode: a request fails if one cluster does not respond. All other names have
// the same meaning.
const ProxyingStrict = "strict"

// Keys of the Secret with the credentials of a back end.
const (
	// SecretKeyUsername holds the name of the user.
	SecretKeyUsername = "username"
	// SecretKeyPassword holds the password.
	SecretKeyPassword = "password"
	// SecretKeyCA holds the PEM certificates of the authorities that sign the certificate of the
	// server. Without it, the authorities of the system are trusted.
	SecretKeyCA = "ca.crt"
	// SecretKeyCertificate holds the PEM certificate of the client. It needs SecretKeyPrivateKey.
	SecretKeyCertificate = "tls.crt"
	// SecretKeyPrivateKey holds the PEM private key of the client.
	SecretKeyPrivateKey = "tls.key"
	// SecretKeyInsecureSkipVerify is "true" if the certificate of the server is not verified.
	SecretKeyInsecureSkipVerify = "insecureSkipVerify"
)

// RegistryConditionCached reports whether the objects of all selected kinds are cached in all
// selected clusters.
const RegistryConditionCached = "Cached"

// Reasons of the condition Cached.
const (
	// RegistryReasonComplete means that all selected kinds are watched in all selected clusters.
	RegistryReasonComplete = "Complete"
	// RegistryReasonListing means that objects are listed for the first time.
	RegistryReasonListing = "Listing"
	// RegistryReasonIncomplete means that a kind is missing or out of date in a cluster.
	RegistryReasonIncomplete = "Incomplete"
	// RegistryReasonNotServed means that no selected cluster serves a kind, or that a selector is
	// invalid.
	RegistryReasonNotServed = "NotServed"
	// RegistryReasonNoCluster means that no cluster is selected.
	RegistryReasonNoCluster = "NoCluster"
	// RegistryReasonBackendFailing means that all objects are cached, but the back end does not store
	// some of them.
	RegistryReasonBackendFailing = "BackendFailing"
)

// RegistryKindState is the state of the cached objects of one kind in one cluster.
type RegistryKindState string

// The states of a kind in a cluster.
const (
	RegistryKindWaiting   RegistryKindState = "Waiting"
	RegistryKindCurrent   RegistryKindState = "Current"
	RegistryKindStale     RegistryKindState = "Stale"
	RegistryKindNotServed RegistryKindState = "NotServed"
)
