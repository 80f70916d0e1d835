package proxy

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

// maxRefusal is how much of a refusal is looked at.
const maxRefusal = 64 << 10

// identified sends a request in the name of the caller. If the member does not know
// the token any more, it is read again.
func (w *way) identified(transport http.RoundTripper, req *http.Request, info *genericrequest.RequestInfo) (*http.Response, error) {
	resp, err := transport.RoundTrip(w.signed(req, w.token))
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return w.unauthorized(transport, req, resp, info)
	case http.StatusForbidden:
		return w.forbidden(resp)
	}
	return resp, nil
}

// signed is a copy of the request with token and caller, ready to be sent.
func (w *way) signed(req *http.Request, token string) *http.Request {
	signed := req.Clone(req.Context())
	strip(signed.Header)
	signed.Header.Set("Authorization", "Bearer "+token)
	impersonate(signed.Header, w.caller)
	return signed
}

// unauthorized deals with a member that does not know the token. The request was
// not acted on, so that it can be sent again, unless its body is used up.
func (w *way) unauthorized(transport http.RoundTripper, req *http.Request, resp *http.Response, info *genericrequest.RequestInfo) (*http.Response, error) {
	token, err := w.fresh(req.Context())
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	if token == w.token {
		return w.strange(resp, info)
	}
	_ = resp.Body.Close()
	if req.Body != nil && req.Body != http.NoBody {
		return nil, soon(failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"the token for cluster %q was renewed while the request was on its way: try again", w.cluster.Name))
	}
	if resp, err = transport.RoundTrip(w.signed(req, token)); err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return w.strange(resp, info)
	case http.StatusForbidden:
		return w.forbidden(resp)
	}
	return resp, nil
}

// strange deals with a member that does not know the newest token. Behind a proxy
// of the member's own it may be an application that asks for a login.
func (w *way) strange(resp *http.Response, info *genericrequest.RequestInfo) (*http.Response, error) {
	if info.Subresource == "proxy" {
		return resp, nil
	}
	_ = resp.Body.Close()
	ref, remedy := w.cluster.Spec.ImpersonatorSecretRef, "join the cluster again"
	if w.cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		remedy = "restart its agent"
	}
	return nil, unavailable(w.cluster, fmt.Errorf(
		"the member does not accept the control plane's token: replace key %q of Secret %s/%s by a token of the member's service account karmada-impersonator, or %s",
		clusterv1alpha1.SecretTokenKey, ref.Namespace, ref.Name, remedy))
}

// unlisted finds whom the impersonator may not act for. The text is the same in all
// encodings of a Status.
var unlisted = regexp.MustCompile(`(users|groups|serviceaccounts) \\?"([^"\\]*)\\?" is forbidden: User \\?"[^"\\]*\\?" cannot impersonate resource`)

// forbidden tells a caller who may not do something in the member from one whom the
// impersonator may not act for; nothing in the member helps the latter.
func (w *way) forbidden(resp *http.Response) (*http.Response, error) {
	// An error comes again when the rest is read.
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	found := unlisted.FindSubmatch(head)
	if found == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
		return resp, nil
	}
	_ = resp.Body.Close()
	of := kinds[string(found[1])]
	return nil, failure(http.StatusForbidden, metav1.StatusReasonForbidden,
		"cluster %q does not let the control plane act for %s %q yet: in the control plane, bind it by a ClusterRoleBinding to a ClusterRole that allows clusters/proxy (%s); members follow within seconds",
		w.cluster.Name, of.kind, found[2], of.remark)
}

// kinds are those whom somebody may act for, and what surprises about them.
var kinds = map[string]struct{ kind, remark string }{
	"users":           {"User", "by its own name: to be let in as one of a group is not enough"},
	"groups":          {"Group", `verb "impersonate" suffices for a group that gives no way by itself`},
	"serviceaccounts": {"ServiceAccount", "by its own name: to be let in as one of a group is not enough"},
}
