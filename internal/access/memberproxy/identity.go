package memberproxy

import (
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

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
