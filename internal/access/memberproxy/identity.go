package memberproxy

import (
	"net"
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

// stripIdentity removes credentials and identities from a header, because the credentials and
// identities of the request are only for the control plane.
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

// isIdentityHeader reports whether a header contains an identity: for an API server
// (Authorization, Impersonate-*), or for a server behind a front proxy (X-Remote-*).
func isIdentityHeader(name string) bool {
	lower := strings.ToLower(name)
	return lower == "authorization" ||
		strings.HasPrefix(lower, "impersonate-") ||
		strings.HasPrefix(lower, "x-remote-")
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

// setForwardedFor sets X-Forwarded-For to the origin of the request, for the audit log of the
// member. All other headers of proxies are removed.
func setForwardedFor(header http.Header, in *http.Request) {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		header.Del(name)
	}
	hops := slices.Clone(in.Header["X-Forwarded-For"])
	if client, _, err := net.SplitHostPort(in.RemoteAddr); err == nil {
		hops = append(hops, client)
	}
	if len(hops) > 0 {
		header.Set("X-Forwarded-For", strings.Join(hops, ", "))
	}
}
