package memberproxy_test

import (
	"net/http"
	"net/url"
	pathpkg "path"
	"strings"
	"testing"

	"karmada.io/karmada/internal/access/memberproxy"
)

func FuzzPathStaysBelowItsEndpoint(f *testing.F) {
	for _, seed := range []string{
		"/api/v1/pods", "/api/v1/namespaces/a%2Fb", "/../c-2/api", "/%2e%2e/c-2", "/a/%2e%2e%2f%2e%2e/c-2", "//evil/api", "/a/./b/", "/%", "", "/a?b#c", `/..\..\c-2`,
	} {
		f.Add(seed)
	}
	const prefix = "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy"
	endpoint := &url.URL{Scheme: "https", Host: "gate:8443", Path: "/k8s/clusters/c-1/"}
	f.Fuzz(func(t *testing.T, escaped string) {
		request, err := url.Parse(prefix + escaped)
		if err != nil || !strings.HasPrefix(request.Path, prefix) {
			return
		}
		path := request.Path[len(prefix):]
		if memberproxy.ValidatePath(path) != nil {
			return
		}
		target := memberproxy.JoinURL(endpoint, path, request)
		if target.Scheme != "https" || target.Host != endpoint.Host {
			t.Fatalf("%q is sent to %s", escaped, target)
		}
		if clean := pathpkg.Clean(target.Path); clean != "/k8s/clusters/c-1" && !strings.HasPrefix(clean, "/k8s/clusters/c-1/") {
			t.Fatalf("%q is sent to %s", escaped, clean)
		}
		parsed, err := url.Parse(target.String())
		if err != nil || parsed.Path != target.Path {
			t.Fatalf("%q is sent as %s, which is parsed as %v, %v", escaped, target, parsed, err)
		}
	})
}

func FuzzFilterRequestHeader(f *testing.F) {
	f.Add("authorization", "Bearer x")
	f.Add("Impersonate-Extra-A", "b")
	f.Add("X_Remote_User", "root")
	f.Add("Accept", "application/json")
	f.Add("Sec-WebSocket-Protocol", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0")
	f.Fuzz(func(t *testing.T, name, value string) {
		header := http.Header{}
		header.Add(name, value)
		header[name] = append(header[name], value)
		memberproxy.FilterRequestHeader(header)
		for name, values := range header {
			if !memberproxy.ForwardedHeaders.Has(name) {
				t.Fatalf("%s was not removed", name)
			}
			if name != "Sec-Websocket-Protocol" {
				continue
			}
			for protocol := range strings.SplitSeq(strings.Join(values, ","), ",") {
				if strings.HasPrefix(strings.TrimSpace(protocol), "base64url.bearer.authorization.k8s.io.") {
					t.Fatalf("%s was not removed", protocol)
				}
			}
		}
	})
}
