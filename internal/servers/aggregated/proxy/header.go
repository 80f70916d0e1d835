package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// maxHeaderBytes is how large the header of an answer may be, in bytes.
	maxHeaderBytes = 256 << 10
	// maxMemberWarnings is how many warnings of a member are passed on, maxWarningBytes
	// how long each may be, in bytes.
	maxMemberWarnings = 16
	maxWarningBytes   = 512
)

// withheld are headers of a member that would change what a client or a browser thinks
// of the control plane: who it is, where it is, and who may read it.
var withheld = []string{
	"Set-Cookie", "Set-Cookie2", "Www-Authenticate", "Proxy-Authenticate", "Proxy-Authentication-Info", "Authentication-Info",
	"Alt-Svc", "Strict-Transport-Security", "Public-Key-Pins", "Clear-Site-Data", "Refresh", "Service-Worker-Allowed",
	"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
	"Access-Control-Allow-Methods", "Access-Control-Expose-Headers", "Access-Control-Max-Age",
}

// bounded returns the answer of a member without what is not for clients.
func (w *way) bounded(resp *http.Response) (*http.Response, error) {
	for _, name := range withheld {
		resp.Header.Del(name)
	}
	boundWarnings(resp.Header, w.cluster.Name)
	if err := w.keepInside(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	// What the member sends after the body reaches its own answer, not the client's.
	passed := *resp
	passed.Trailer = nil
	return &passed, nil
}

// boundWarnings bounds the number and length of warnings. Clients print them onto
// terminals.
func boundWarnings(header http.Header, cluster string) {
	lines := header["Warning"]
	if len(lines) == 0 {
		return
	}
	header.Del("Warning")
	warnings, _ := utilnet.ParseWarningHeaders(lines[:min(len(lines), maxMemberWarnings+1)])
	for i, warning := range warnings {
		text := conditions.Shorten(conditions.Printable(warning.Text), maxWarningBytes)
		if i == maxMemberWarnings {
			text = fmt.Sprintf("cluster %q sends more than %d warnings, the rest is left out", cluster, maxMemberWarnings)
		}
		if line, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			header.Add("Warning", line)
		}
		if i == maxMemberWarnings {
			return
		}
	}
}

// keepInside lets redirects lead to places in the member only, which are below the
// proxy path of its cluster. Clients follow redirects with the credentials of their
// user, and to the control plane as well.
func (w *way) keepInside(resp *http.Response) error {
	if resp.Header.Get("Location") == "" {
		return nil
	}
	inside, ok := w.inside(resp)
	switch {
	case ok:
		resp.Header.Set("Location", inside)
	case resp.StatusCode >= http.StatusMultipleChoices && resp.StatusCode < http.StatusBadRequest:
		return failure(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable,
			"cluster %q answers %d with a redirect out of the cluster, which is not passed on", w.cluster.Name, resp.StatusCode)
	default:
		resp.Header.Del("Location")
	}
	return nil
}

// inside is the path in the control plane of the place in the member that an answer
// names.
func (w *way) inside(resp *http.Response) (string, bool) {
	endpoint, err := url.Parse(w.cluster.Spec.APIEndpoint)
	if err != nil {
		return "", false
	}
	to, err := resp.Location()
	if err != nil || to.Scheme != endpoint.Scheme || to.Host != endpoint.Host || to.User != nil {
		return "", false
	}
	rest, below := strings.CutPrefix(to.EscapedPath(), strings.TrimSuffix(endpoint.EscapedPath(), "/"))
	if !below || rest != "" && !strings.HasPrefix(rest, "/") || checkPath(to.Path) != nil {
		return "", false
	}
	location := url.URL{Path: proxyPath(w.cluster), RawQuery: to.RawQuery}
	return strings.Replace(location.String(), location.Path, location.Path+rest, 1), true
}
