// Package combinedversion encodes the resource versions of several clusters in the
// resourceVersion of one response of the global proxy, and the position at which the next page of
// a list begins in its continue token.
//
// A combined version is the unpadded base64url encoding of a JSON object from cluster to
// resourceVersion, with sorted keys and without spaces. Clients treat it as an opaque
// resourceVersion.
package combinedversion

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// Version is the resourceVersion of a request or response. The zero value is the empty
// resourceVersion.
type Version struct {
	// any is "" or "0". Both apply to every cluster. It is empty if clusters is set.
	any      string
	clusters map[string]string
}

// New returns the combined version of clusters. The map must not be changed afterwards.
func New(clusters map[string]string) Version { return Version{clusters: clusters} }

// Parse parses the resourceVersion of a request. A text that is no combined version counts as the
// empty resourceVersion, because clients may send the resourceVersion of another API server.
func Parse(text string) Version {
	if text == "" || text == "0" {
		return Version{any: text}
	}
	clusters, ok := decode(text)
	if !ok {
		return Version{}
	}
	return Version{clusters: clusters}
}

// IsCombined reports whether a text is a combined version.
func IsCombined(text string) bool {
	_, ok := decode(text)
	return ok
}

func decode(text string) (map[string]string, bool) {
	if text == "" {
		return nil, false
	}
	plain, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, false
	}
	var clusters map[string]string
	if err := json.Unmarshal(plain, &clusters); err != nil || clusters == nil {
		return nil, false
	}
	return clusters, true
}

// String returns the encoded version.
func (v Version) String() string {
	if v.clusters == nil {
		return v.any
	}
	plain, err := json.Marshal(v.clusters)
	if err != nil {
		// A map of strings can always be encoded.
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(plain)
}

// For returns the resourceVersion of a cluster. It is empty if the version has no entry for the
// cluster.
func (v Version) For(cluster string) string {
	if v.clusters == nil {
		return v.any
	}
	return v.clusters[cluster]
}

// Clusters returns the resourceVersion of each cluster. It is nil if the version has no entries. The
// map must not be changed.
func (v Version) Clusters() map[string]string { return v.clusters }

// Continue is the position in a list at which the next page begins.
type Continue struct {
	// Version is the combined version of the first page. The other pages use it too.
	Version string `json:"rv"`
	// Cluster is the cluster with which the page begins.
	Cluster string `json:"cluster,omitempty"`
	// Token is the continue token of this cluster. Empty means the beginning of its list.
	Token string `json:"continue,omitempty"`
}

// ParseContinue parses the continue token of a request. The error names the remedy.
func ParseContinue(token string) (Continue, error) {
	plain, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(token, "="))
	var position Continue
	if err == nil {
		err = json.Unmarshal(plain, &position)
	}
	if err != nil || position.Cluster == "" {
		return Continue{}, fmt.Errorf("the continue token %q is not from a list of this API: list again without it", limit(token))
	}
	return position, nil
}

// String returns the token.
func (c Continue) String() string {
	plain, err := json.Marshal(c)
	if err != nil {
		// A struct of strings can always be encoded.
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(plain)
}

// limit shortens a token for a message.
func limit(token string) string {
	const maxLength = 64
	if len(token) <= maxLength {
		return token
	}
	return strings.ToValidUTF8(token[:maxLength], "") + "..."
}
