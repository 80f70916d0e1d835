package integration

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	agentdomain "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/testenv"
)

// startHTTPProxy starts an HTTPS server that forwards requests. It can change responses, such
// as their times, and delay them, which a tcpProxy cannot. Clients either skip the verification
// of its certificate or trust the authority that signed it.
func startHTTPProxy(t *testing.T, to *rest.Config, through http.RoundTripper, certificate []tls.Certificate, change func(*http.Response) error) string {
	t.Helper()
	target, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval, proxy.Transport, proxy.ModifyResponse = -1, through, change
	server := httptest.NewUnstartedServer(proxy)
	server.EnableHTTP2 = true
	if certificate != nil {
		server.TLS = &tls.Config{Certificates: certificate, MinVersion: tls.VersionTLS12}
	}
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// startProxyToMember forwards requests with the token of the client.
func startProxyToMember(t *testing.T, member *rest.Config, change func(*http.Response) error) string {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return startHTTPProxy(t, member, transport, nil, change)
}

// startProxyToKarmada forwards the requests of an agent. The TLS connection of the agent ends
// at the proxy, which impersonates the agent.
func startProxyToKarmada(t *testing.T, env *testenv.Env, name string, wrap func(http.RoundTripper) http.RoundTripper, change func(*http.Response) error) string {
	t.Helper()
	certs := env.Certificates()
	ca, err := certs.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.EnsureLeaf("door", pki.Leaf{CommonName: "door", Hosts: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(certs.CertFile("door"), certs.KeyFile("door"))
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: agentdomain.User(name), Groups: []string{agentdomain.Group, "system:authenticated"}}
	config.Wrap(wrap)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return startHTTPProxy(t, env.Config, transport, []tls.Certificate{certificate}, change)
}

// delayResponses delays every response.
func delayResponses(by time.Duration) func(*http.Response) error {
	return func(response *http.Response) error {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-response.Request.Context().Done():
		}
		return nil
	}
}

// jsonTime matches a time in JSON as API servers write it.
var jsonTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z"`)

// shiftTimes shifts all times in JSON and keeps their length.
func shiftTimes(text []byte, by time.Duration) []byte {
	return jsonTime.ReplaceAllFunc(text, func(found []byte) []byte {
		layout := "2006-01-02T15:04:05Z"
		if len(found) > len(layout)+2 {
			layout = "2006-01-02T15:04:05.000000Z"
		}
		then, err := time.Parse(layout, string(bytes.Trim(found, `"`)))
		if err != nil {
			return found
		}
		return []byte(`"` + then.Add(by).Format(layout) + `"`)
	})
}

// shiftResponseTimes changes responses to those of a server with a wrong clock: the header Date
// and all times in JSON, also in watches.
func shiftResponseTimes(by time.Duration) func(*http.Response) error {
	return func(response *http.Response) error {
		response.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != runtime.ContentTypeJSON {
			return nil
		}
		original := response.Body
		reader, writer := io.Pipe()
		go func() {
			defer func() { _ = original.Close() }()
			lines := bufio.NewReader(original)
			for {
				line, err := lines.ReadBytes('\n')
				if _, wrong := writer.Write(shiftTimes(line, by)); wrong != nil {
					return
				}
				if err != nil {
					_ = writer.CloseWithError(err)
					return
				}
			}
		}()
		response.Body = &shiftedBody{Reader: reader, closeReader: func() error { return reader.CloseWithError(io.ErrClosedPipe) }, original: original}
		return nil
	}
}

// shiftedBody is a response body that closes the original body too.
type shiftedBody struct {
	io.Reader
	closeReader func() error
	original    io.Closer
}

func (s *shiftedBody) Close() error {
	_ = s.original.Close()
	return s.closeReader()
}

// shiftRequestTimes changes requests to those of a client with a wrong clock: all times in
// bodies, also in Leases.
func shiftRequestTimes(by time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
			if request.Body == nil || request.Body == http.NoBody {
				return next.RoundTrip(request)
			}
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return nil, err
			}
			_ = request.Body.Close()
			if request.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
				body = shiftLeaseTimes(body, by)
			} else {
				body = shiftTimes(body, by)
			}
			request = request.Clone(request.Context())
			request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return next.RoundTrip(request)
		})
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (r roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// shiftLeaseTimes shifts the times of a Lease in protobuf. Other bodies are returned unchanged.
func shiftLeaseTimes(body []byte, by time.Duration) []byte {
	object, kind, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	lease, is := object.(*coordinationv1.Lease)
	if err != nil || !is {
		return body
	}
	for _, each := range []**metav1.MicroTime{&lease.Spec.AcquireTime, &lease.Spec.RenewTime} {
		if *each != nil {
			*each = &metav1.MicroTime{Time: (*each).Add(by)}
		}
	}
	info, found := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !found {
		return body
	}
	changed, err := runtime.Encode(clientgoscheme.Codecs.EncoderForVersion(info.Serializer, kind.GroupVersion()), lease)
	if err != nil {
		return body
	}
	return changed
}
