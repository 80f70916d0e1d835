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

// A door reads what passes, which a gate does not: it can delay answers and put
// other times into them. It is a server before another one, for who trusts anybody,
// or the authority that has signed its certificate.
func door(t *testing.T, to *rest.Config, through http.RoundTripper, certificate []tls.Certificate, change func(*http.Response) error) string {
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

// doorToMember lets everybody through who has a token of the member.
func doorToMember(t *testing.T, member *rest.Config, change func(*http.Response) error) string {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return door(t, member, transport, nil, change)
}

// doorToKarmada is one for an agent, whose certificate ends there: it goes on with
// the agent's rights.
func doorToKarmada(t *testing.T, env *testenv.Env, name string, asked func(http.RoundTripper) http.RoundTripper, change func(*http.Response) error) string {
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
	config.Wrap(asked)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return door(t, env.Config, transport, []tls.Certificate{certificate}, change)
}

// late delays every answer.
func late(by time.Duration) func(*http.Response) error {
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

// moment is a time in JSON as API servers write it.
var moment = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z"`)

// moved is JSON with other times, of the same length.
func moved(text []byte, by time.Duration) []byte {
	return moment.ReplaceAllFunc(text, func(found []byte) []byte {
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

// skewed are answers of a server whose clock is wrong: the header Date, and all
// times in JSON, watches included.
func skewed(by time.Duration) func(*http.Response) error {
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
				if _, wrong := writer.Write(moved(line, by)); wrong != nil {
					return
				}
				if err != nil {
					_ = writer.CloseWithError(err)
					return
				}
			}
		}()
		response.Body = &closing{Reader: reader, close: func() error { return reader.CloseWithError(io.ErrClosedPipe) }, also: original}
		return nil
	}
}

// closing is a body that closes what it was made of.
type closing struct {
	io.Reader
	close func() error
	also  io.Closer
}

func (c *closing) Close() error {
	_ = c.also.Close()
	return c.close()
}

// skewedRequests are requests of a client whose clock is wrong: all times in what
// it sends, its Lease included.
func skewedRequests(by time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(request *http.Request) (*http.Response, error) {
			if request.Body == nil || request.Body == http.NoBody {
				return next.RoundTrip(request)
			}
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return nil, err
			}
			_ = request.Body.Close()
			if request.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
				body = movedLease(body, by)
			} else {
				body = moved(body, by)
			}
			request = request.Clone(request.Context())
			request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return next.RoundTrip(request)
		})
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

// movedLease is a Lease in binary form with other times; what is none stays.
func movedLease(body []byte, by time.Duration) []byte {
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
