package memberproxy

import (
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	protocolHeader = "Sec-Websocket-Protocol"
	// tokenProtocol is the prefix of the WebSocket protocol in which browsers send a token, because
	// browsers cannot set headers on a WebSocket.
	tokenProtocol = "base64url.bearer.authorization.k8s.io."
)

// stripIdentity removes from a header what is only for the control plane: credentials, cookies,
// identities, and the addresses of the client and of the proxies before the control plane.
func stripIdentity(header http.Header) {
	for name := range header {
		if isIdentityHeader(name) {
			delete(header, name)
		}
	}
	stripTokenProtocols(header)
}

// stripTokenProtocols removes tokens from the list of WebSocket protocols.
func stripTokenProtocols(header http.Header) {
	offered := header[protocolHeader]
	if !slices.ContainsFunc(offered, func(line string) bool { return strings.Contains(line, tokenProtocol) }) {
		return
	}
	var kept []string
	for _, line := range offered {
		for protocol := range strings.SplitSeq(line, ",") {
			if protocol = strings.TrimSpace(protocol); !strings.HasPrefix(protocol, tokenProtocol) {
				kept = append(kept, protocol)
			}
		}
	}
	header.Set(protocolHeader, strings.Join(kept, ","))
	if len(kept) == 0 {
		header.Del(protocolHeader)
	}
}

// isIdentityHeader reports whether a header contains an identity or an address: for an API server
// (Authorization, Impersonate-*), from a browser (Cookie), or from a front proxy (X-Remote-*,
// Forwarded, X-Forwarded-*, X-Real-Ip).
func isIdentityHeader(name string) bool {
	lower := strings.ToLower(name)
	switch lower {
	case "authorization", "cookie", "forwarded", "x-real-ip":
		return true
	}
	return strings.HasPrefix(lower, "impersonate-") || strings.HasPrefix(lower, "x-remote-") || strings.HasPrefix(lower, "x-forwarded-")
}

// impersonate adds the impersonation headers for the caller. The UID and the extra fields of
// the caller are not sent, because the role of the impersonator in the member covers users,
// service accounts and groups only.
func impersonate(header http.Header, caller user.Info) {
	header.Set(authenticationv1.ImpersonateUserHeader, caller.GetName())
	for _, group := range impersonatedGroups(caller) {
		header.Add(authenticationv1.ImpersonateGroupHeader, group)
	}
}

// impersonatedGroups returns the groups of the caller that the member does not add itself. The
// member adds system:authenticated to every impersonated user, except to system:anonymous. If a
// service account is impersonated without groups, the member adds the groups of its namespace.
// These groups are not sent, because sending them would require the right to impersonate the
// groups of all service accounts.
func impersonatedGroups(caller user.Info) []string {
	var groups []string
	for _, group := range caller.GetGroups() {
		if group != user.AllAuthenticated && group != user.AllUnauthenticated {
			groups = append(groups, group)
		}
	}
	namespace, _, err := serviceaccount.SplitUsername(caller.GetName())
	if err != nil {
		return groups
	}
	implied := serviceaccount.MakeGroupNames(namespace)
	for _, group := range groups {
		if !slices.Contains(implied, group) {
			// The member adds no groups if the request contains a group, so all groups are sent.
			return groups
		}
	}
	return nil
}
