package proxy

import (
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// put returns the request as the member may see it: acting for the caller with
// the impersonator's token. Credentials and identities that the request brought
// along do not pass. UID and extra fields of the caller stay behind, because the
// impersonator's role in the member covers users and groups only.
func (i identity) put(req *http.Request) *http.Request {
	out := req.Clone(req.Context())
	for name := range out.Header {
		if isIdentityHeader(name) {
			delete(out.Header, name)
		}
	}
	out.Header.Set("Authorization", "Bearer "+i.token)
	out.Header.Set(authenticationv1.ImpersonateUserHeader, i.caller.GetName())
	for _, group := range i.caller.GetGroups() {
		// The member adds the group of all authenticated users itself, and a
		// caller without credentials must not gain it there by being named.
		if group == user.AllAuthenticated || group == user.AllUnauthenticated {
			continue
		}
		out.Header.Add(authenticationv1.ImpersonateGroupHeader, group)
	}
	return out
}

// isIdentityHeader reports whether a header says who somebody is, to an API
// server (Authorization, Impersonate-*) or behind a front proxy (X-Remote-*).
func isIdentityHeader(name string) bool {
	lower := strings.ToLower(name)
	return lower == "authorization" ||
		strings.HasPrefix(lower, "impersonate-") ||
		strings.HasPrefix(lower, "x-remote-")
}
