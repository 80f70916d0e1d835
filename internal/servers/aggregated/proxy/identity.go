package proxy

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
	// tokenProtocol is how browsers, which cannot set headers on a WebSocket, hand
	// in a token.
	tokenProtocol = "base64url.bearer.authorization.k8s.io."
)

// strip takes from a header what says who somebody is: credentials and identities
// that the request brought along are for the control plane only.
func strip(header http.Header) {
	for name := range header {
		if isIdentityHeader(name) {
			delete(header, name)
		}
	}
	stripProtocols(header)
}

// stripProtocols takes tokens from the list of protocols of a WebSocket.
func stripProtocols(header http.Header) {
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

// isIdentityHeader reports whether a header says who somebody is, to an API
// server (Authorization, Impersonate-*) or behind a front proxy (X-Remote-*).
func isIdentityHeader(name string) bool {
	lower := strings.ToLower(name)
	return lower == "authorization" ||
		strings.HasPrefix(lower, "impersonate-") ||
		strings.HasPrefix(lower, "x-remote-")
}

// impersonate lets a request act for the caller. UID and extra fields of the caller
// stay behind, because the impersonator's role in the member covers users, service
// accounts and groups only.
func impersonate(header http.Header, caller user.Info) {
	header.Set(authenticationv1.ImpersonateUserHeader, caller.GetName())
	for _, group := range groupsToSend(caller) {
		header.Add(authenticationv1.ImpersonateGroupHeader, group)
	}
}

// groupsToSend are the caller's groups that the member cannot know by itself. It
// adds the group of all authenticated users to everybody, and a caller without
// credentials must not gain it there by being named. A service account without
// groups gets those of its namespace: sending them would need a right to act for
// the groups of all service accounts.
func groupsToSend(caller user.Info) []string {
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
			// With any group given, the member adds none.
			return groups
		}
	}
	return nil
}

// trace lets the member's audit log know where a request comes from. What else
// proxies say about themselves is of no use there.
func trace(header http.Header, in *http.Request) {
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
