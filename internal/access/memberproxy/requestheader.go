package memberproxy

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	protocolHeader = "Sec-Websocket-Protocol"
	// tokenProtocol is the prefix of the WebSocket protocol in which browsers send a token, because
	// browsers cannot set headers on a WebSocket.
	tokenProtocol = "base64url.bearer.authorization.k8s.io."
)

// forwardedHeaders are the request headers that a member receives, in canonical form. They describe the
// request, its body and the wanted response, but not the user, the session of a browser, or the way of
// the request to the control plane. Proxies add such headers under many names, so every header that is
// not in this list is removed.
var forwardedHeaders = sets.New(
	"Accept", "Accept-Encoding", "Accept-Language", "User-Agent",
	"Content-Encoding", "Content-Length", "Content-Type", "Range",
	// Clients with a cache send the conditions for discovery and OpenAPI.
	"Cache-Control", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since",
	// Streams use SPDY or WebSockets.
	"Connection", "Upgrade", "X-Stream-Protocol-Version",
	"Sec-Websocket-Extensions", "Sec-Websocket-Key", protocolHeader, "Sec-Websocket-Version",
	// These relate a request to a command of kubectl, to the audit log and to a trace.
	"Kubectl-Command", "Kubectl-Session", "Audit-Id", "Traceparent", "Tracestate",
)

// filterRequestHeader removes from a request header everything that a member must not receive.
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
