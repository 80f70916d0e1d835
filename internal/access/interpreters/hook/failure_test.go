package hook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"karmada.io/karmada/internal/domain/interpreter/webhook"
)

// TestFailedCalls checks that each failure names address, cause and remedy, and that the text is the
// same for the next call.
func TestFailedCalls(t *testing.T) {
	valid := newCertificate(t, time.Now().Add(time.Hour))
	expiry := time.Date(2020, 5, 6, 7, 8, 9, 0, time.UTC)
	expired := newCertificate(t, expiry)
	answer := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	tests := map[string]struct {
		certificate certified
		handler     http.HandlerFunc
		change      func(hook *webhook.Hook)
		want        string
	}{
		"text instead of JSON":       {handler: answer(200, "text/plain", "hello"), want: "the response is no ResourceInterpreterContext in JSON: invalid character 'h' looking for beginning of value: check that the address"},
		"an empty answer":            {handler: answer(200, "application/json", ""), want: "the response is no ResourceInterpreterContext in JSON: unexpected end"},
		"a field of a wrong type":    {handler: answer(200, "application/json", `{"response":{"healthy":"yes"}}`), want: "the response has a wrong type: response.healthy is a JSON string: correct the field"},
		"an answer that is too long": {handler: answer(200, "application/json", `{"response":{"uid":"`+strings.Repeat("x", maxResponseBytes)+`"}}`), want: "the response has more than 4 MiB: return a smaller patch or status"},
		"an error page of a proxy":   {handler: answer(502, "text/html; charset=utf-8", "<html><title>Bad Gateway</title></html>"), want: "the server responded with 502 Bad Gateway with an HTML page: check that the address"},
		"an error with a text":       {handler: answer(500, "text/plain", "the\ndatabase is\x00 down\n"), want: "the server responded with 500 Internal Server Error, the database is down: check the address and the logs of the webhook"},
		"an error with a long text":  {handler: answer(500, "text/plain", strings.Repeat("x", 1<<20)), want: "xxx...: check the address"},
		"an error of the kit":        {handler: answer(400, "application/json", `{"response":{"status":{"code":400,"message":"no body"}}}`), want: "the server responded with 400 Bad Request, no body: check"},
		"an error without a text":    {handler: answer(404, "text/plain", ""), want: "the server responded with 404 Not Found: check the address"},
		"a redirect":                 {handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, want: `the server responded with 302 Found to "/elsewhere", and redirects are not followed: set the final address in clientConfig`},
		"a redirect to a login": {handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login?state="+rand.Text(), http.StatusFound)
		}, want: `the server responded with 302 Found to "/login", and`},
		"a malformed answer": {handler: func(w http.ResponseWriter, _ *http.Request) {
			connection, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(connection, strings.Repeat("x", 50_000)+"\r\n\r\n")
			connection.Close()
		}, want: "...: check the address and the webhook"},
		"a redirect that keeps POST": {handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, want: "the server responded with 307 Temporary Redirect"},
		"no answer": {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: "the server closed the connection before its response was complete: check the logs of the webhook"},
		"half an answer": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			panic(http.ErrAbortHandler)
		}, want: "the server closed the connection before its response was complete"},
		"an expired certificate": {certificate: expired, want: "the certificate of the webhook is valid from 2010-05-09T07:08:09Z to 2020-05-06T07:08:09Z only: renew it, or correct the clock"},
		"a wrong CA": {change: func(hook *webhook.Hook) { hook.Client.CABundle = newCertificate(t, time.Now().Add(time.Hour)).bundle },
			want: "the certificate of the webhook is not signed by an authority in clientConfig.caBundle: set caBundle to the authority that signed it"},
		"no CA":               {change: func(hook *webhook.Hook) { hook.Client.CABundle = nil }, want: "signed by an authority that this system does not know: set clientConfig.caBundle"},
		"a CA that is no PEM": {change: func(hook *webhook.Hook) { hook.Client.CABundle = []byte("x") }, want: "clientConfig.caBundle holds no certificate: set it to the PEM of the authority"},
		"a wrong name": {change: func(hook *webhook.Hook) {
			*hook.Client.URL = strings.Replace(*hook.Client.URL, "127.0.0.1", "localhost", 1)
		},
			want: "the certificate of the webhook is for another name: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.certificate.bundle == nil {
				test.certificate = valid
			}
			if test.handler == nil {
				test.handler = answerHealthy
			}
			server := serve(t, test.certificate, test.handler)
			hook := newHook(server.URL+"/interpret?token=secret", test.certificate.bundle)
			if test.change != nil {
				test.change(hook)
			}
			address, _, _ := strings.Cut(*hook.Client.URL, "?")
			caller := newCaller(t, Options{})
			_, err := call(t.Context(), caller, hook)
			if err == nil || !strings.HasPrefix(err.Error(), address+": ") || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 700 || strings.Contains(err.Error(), "secret") {
				t.Fatalf("err = %v, want %s", err, test.want)
			}
			if _, again := call(t.Context(), caller, hook); again == nil || again.Error() != err.Error() {
				t.Errorf("the next call has another text: %v", again)
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	certificate := newCertificate(t, time.Now().Add(time.Hour))
	var paths []string
	server := serve(t, certificate, func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	_, err := call(t.Context(), newCaller(t, Options{}), newHook(server.URL+"/interpret", certificate.bundle))
	if err == nil || len(paths) != 1 {
		t.Errorf("requests to %q, error %v", paths, err)
	}
}

func TestConnectionsThatFail(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(answerHealthy))
	defer plain.Close()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := listener.Addr().String()
	listener.Close()
	failing := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: err}
		}
	}
	changing := func(failure func(port int) error) func(context.Context, string, string) (net.Conn, error) {
		port := 40000
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			port++
			return failing(failure(port))(ctx, network, address)
		}
	}
	tests := map[string]struct {
		address string
		dial    func(context.Context, string, string) (net.Conn, error)
		want    string
	}{
		"a server without TLS":    {address: plain.Listener.Addr().String(), want: "the server does not speak TLS: serve the webhook with TLS, or correct the port"},
		"a port without a server": {address: unused, want: "connection refused: start the webhook, or correct the address"},
		"an unknown host":         {address: "web.example.io", dial: failing(&net.DNSError{Name: "web.example.io", IsNotFound: true}), want: `there is no host "web.example.io": correct the address, or create the DNS record`},
		"a DNS server that fails": {address: "web.example.io", dial: failing(&net.DNSError{Name: "web.example.io", Err: "server misbehaving"}), want: `looking up the host "web.example.io": server misbehaving: check the DNS server`},
		"a DNS server that refuses": {address: "web.example.io", dial: changing(func(port int) error {
			return &net.DNSError{Name: "web.example.io", Err: fmt.Sprintf("read udp 10.0.0.1:%d->10.0.0.2:53: read: connection refused", port)}
		}), want: `looking up the host "web.example.io": connection refused: check the DNS server`},
		"a DNS server that does not answer": {address: "web.example.io", dial: changing(func(port int) error {
			return &net.DNSError{Name: "web.example.io", Err: fmt.Sprintf("read udp 10.0.0.1:%d->10.0.0.2:53: i/o timeout", port), IsTimeout: true}
		}), want: `looking up the host "web.example.io": no response in time: check the DNS server`},
		"no route": {address: "web.example.io", dial: failing(errors.New("no route to host")), want: "dial: no route to host: check the address"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			caller := newCaller(t, Options{Dial: test.dial})
			var first error
			for range 2 {
				_, err := call(t.Context(), caller, newHook("https://"+test.address, nil))
				if first == nil {
					first = err
				}
				if err == nil || err.Error() != first.Error() || !strings.HasPrefix(err.Error(), "https://"+test.address+": "+test.want) {
					t.Errorf("err = %v, want %s", err, test.want)
				}
			}
		})
	}
}
