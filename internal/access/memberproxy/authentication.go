package memberproxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// maxErrorBody limits the part of an error response that is read.
const maxErrorBody = 64 << 10

// sendAuthenticated sends a request with the identity of the caller. If the member rejects the
// token of the impersonator, sendAuthenticated reads the token again without a cache.
func (m *memberClient) sendAuthenticated(transport http.RoundTripper, req *http.Request, info *genericrequest.RequestInfo) (*http.Response, error) {
	resp, err := transport.RoundTrip(m.withIdentity(req, m.token))
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return m.handleUnauthorized(transport, req, resp, info)
	case http.StatusForbidden:
		return m.explainForbidden(resp)
	}
	return resp, nil
}

// withIdentity returns a copy of the request with the token and the impersonation headers. Headers that
// the member must not receive, and trailers, are removed.
func (m *memberClient) withIdentity(req *http.Request, token string) *http.Request {
	signed := req.Clone(req.Context())
	filterRequestHeader(signed.Header)
	signed.Trailer = nil
	signed.Header.Set("Authorization", "Bearer "+token)
	impersonate(signed.Header, m.caller)
	return signed
}

// handleUnauthorized handles the response of a member that rejects the token. The member did not
// execute the request, so the request can be sent again unless its body is consumed.
func (m *memberClient) handleUnauthorized(transport http.RoundTripper, req *http.Request, resp *http.Response, info *genericrequest.RequestInfo) (*http.Response, error) {
	token, err := m.freshToken(req.Context())
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	if token == m.token {
		return m.rejectedToken(resp, info)
	}
	_ = resp.Body.Close()
	if req.Body != nil && req.Body != http.NoBody {
		return nil, withRetryAfter(newStatusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"the token for cluster %q was renewed during the request: try again", m.cluster.Name))
	}
	if resp, err = transport.RoundTrip(m.withIdentity(req, token)); err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return m.rejectedToken(resp, info)
	case http.StatusForbidden:
		return m.explainForbidden(resp)
	}
	return resp, nil
}

// rejectedToken returns the response or error for a member that rejects the current token. If the
// request is for a proxy subresource in the member, the response may come from an application that
// requires a login.
func (m *memberClient) rejectedToken(resp *http.Response, info *genericrequest.RequestInfo) (*http.Response, error) {
	if info.Subresource == "proxy" {
		return resp, nil
	}
	_ = resp.Body.Close()
	ref, remedy := m.cluster.Spec.ImpersonatorSecretRef, "join the cluster again"
	if m.cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		remedy = "restart its agent"
	}
	return nil, newUnavailableError(m.cluster, fmt.Errorf(
		"the member rejects the token of the control plane: replace key %q of Secret %s/%s by a token of the service account karmada-impersonator of the member, or %s",
		clusterv1alpha1.SecretTokenKey, ref.Namespace, ref.Name, remedy))
}

// impersonationDenied matches the subject that the impersonator is not allowed to impersonate. The
// matched text is the same in all encodings of a Status.
var impersonationDenied = regexp.MustCompile(`(users|groups|serviceaccounts) \\?"([^"\\]*)\\?" is forbidden: User \\?"[^"\\]*\\?" cannot impersonate resource`)

// explainForbidden returns an error with a remedy if the impersonator is not allowed to
// impersonate the caller. If the caller has no rights in the member, it returns the original
// response.
func (m *memberClient) explainForbidden(resp *http.Response) (*http.Response, error) {
	// Ignore a read error, because it occurs again when the rest of the body is read.
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	found := impersonationDenied.FindSubmatch(head)
	if found == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
		return resp, nil
	}
	_ = resp.Body.Close()
	subject := subjectKinds[string(found[1])]
	return nil, newStatusError(http.StatusForbidden, metav1.StatusReasonForbidden,
		"cluster %q does not let the control plane impersonate %s %q yet: in the control plane, bind the subject with a ClusterRoleBinding to a ClusterRole that allows clusters/proxy (%s); members are updated within seconds",
		m.cluster.Name, subject.kind, found[2], subject.hint)
}

// subjectKinds are the kinds of subjects that can be impersonated, with a hint for each.
var subjectKinds = map[string]struct{ kind, hint string }{
	"users":           {"User", "by its own name: a binding of one of its groups is not enough"},
	"groups":          {"Group", `the verb "impersonate" is enough for a group without access of its own`},
	"serviceaccounts": {"ServiceAccount", "by its own name: a binding of one of its groups is not enough"},
}
