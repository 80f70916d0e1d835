package memberproxy

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// maxHeaderBytes limits the size of a response's header, in bytes.
	maxHeaderBytes = 256 << 10
	// maxMemberWarnings limits the number of a member's warnings that are forwarded, and
	// maxWarningBytes limits the length of each.
	maxMemberWarnings = 16
	maxWarningBytes   = 512
)

// removedHeaders are removed from a member's response, because they would change how a client or
// browser treats the control plane: cookies, authentication, location and access control.
var removedHeaders = []string{
	"Set-Cookie", "Set-Cookie2", "Www-Authenticate", "Proxy-Authenticate", "Proxy-Authentication-Info", "Authentication-Info",
	"Alt-Svc", "Strict-Transport-Security", "Public-Key-Pins", "Clear-Site-Data", "Refresh", "Service-Worker-Allowed",
	"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
	"Access-Control-Allow-Methods", "Access-Control-Expose-Headers", "Access-Control-Max-Age",
}

// filterResponse removes everything from a member's response that must not reach clients.
func (c *call) filterResponse(resp *http.Response) (*http.Response, error) {
	for _, name := range removedHeaders {
		resp.Header.Del(name)
	}
	limitWarnings(resp.Header, c.cluster.Name)
	if err := c.rewriteLocation(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	// A member sends trailers after the body, and the transport adds them to resp. Return a copy of
	// resp without trailers, so that they do not reach the client.
	filtered := *resp
	filtered.Trailer = nil
	return &filtered, nil
}

// limitWarnings limits the number and length of warnings, because clients print them to terminals.
func limitWarnings(header http.Header, cluster string) {
	lines := header["Warning"]
	if len(lines) == 0 {
		return
	}
	header.Del("Warning")
	warnings, _ := utilnet.ParseWarningHeaders(lines[:min(len(lines), maxMemberWarnings+1)])
	for i, warning := range warnings {
		text := conditions.Truncate(conditions.ToPrintable(warning.Text), maxWarningBytes)
		if i == maxMemberWarnings {
			text = fmt.Sprintf("cluster %q sends more than %d warnings, the others are omitted", cluster, maxMemberWarnings)
		}
		if line, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			header.Add("Warning", line)
		}
		if i == maxMemberWarnings {
			return
		}
	}
}

// rewriteLocation rewrites redirects within the member to the cluster's proxy path, and rejects all other
// redirects, because clients follow redirects with their user's credentials, even to the control plane.
func (c *call) rewriteLocation(resp *http.Response) error {
	if resp.Header.Get("Location") == "" {
		return nil
	}
	location, ok := c.memberLocation(resp)
	switch {
	case ok:
		resp.Header.Set("Location", location)
	case resp.StatusCode >= http.StatusMultipleChoices && resp.StatusCode < http.StatusBadRequest:
		return fanout.NewStatusError(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable,
			"cluster %q returns %d with a redirect out of the cluster, which is not forwarded", c.cluster.Name, resp.StatusCode)
	default:
		resp.Header.Del("Location")
	}
	return nil
}

// memberLocation returns the control plane's path for a response's Location. ok is false if the
// Location is outside the member.
func (c *call) memberLocation(resp *http.Response) (path string, ok bool) {
	endpoint, err := url.Parse(c.cluster.Spec.APIEndpoint)
	if err != nil {
		return "", false
	}
	to, err := resp.Location()
	if err != nil || to.Scheme != endpoint.Scheme || to.Host != endpoint.Host || to.User != nil {
		return "", false
	}
	rest, below := strings.CutPrefix(to.EscapedPath(), strings.TrimSuffix(endpoint.EscapedPath(), "/"))
	if !below || rest != "" && !strings.HasPrefix(rest, "/") || ValidatePath(to.Path) != nil {
		return "", false
	}
	location := url.URL{Path: "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/" + c.cluster.Name + "/proxy",
		RawQuery: to.RawQuery}
	return strings.Replace(location.String(), location.Path, location.Path+rest, 1), true
}

const (
	protocolHeader = "Sec-Websocket-Protocol"
	// tokenProtocol is the prefix of the WebSocket protocol in which browsers send a token, because
	// browsers cannot set headers on a WebSocket.
	tokenProtocol = "base64url.bearer.authorization.k8s.io."
)

// forwardedHeaders are the request headers that a member receives, in canonical form. They describe the
// request, its body and the wanted response, but not the user, a browser session, or the route to the
// control plane. Proxies add headers about the latter under many names, so every header that is not in
// this list is removed.
var forwardedHeaders = sets.New(
	"Accept", "Accept-Encoding", "Accept-Language", "User-Agent",
	"Content-Encoding", "Content-Length", "Content-Type", "Range",
	// Clients with a cache send these conditions for discovery and OpenAPI.
	"Cache-Control", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since",
	// Streams use SPDY or WebSockets.
	"Connection", "Upgrade", "X-Stream-Protocol-Version",
	"Sec-Websocket-Extensions", "Sec-Websocket-Key", protocolHeader, "Sec-Websocket-Version",
	// These relate a request to a kubectl command, to the audit log and to a trace.
	"Kubectl-Command", "Kubectl-Session", "Audit-Id", "Traceparent", "Tracestate",
)

// filterRequestHeader removes everything from a request header that a member must not receive.
func filterRequestHeader(header http.Header) {
	for name := range header {
		if !forwardedHeaders.Has(name) {
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
