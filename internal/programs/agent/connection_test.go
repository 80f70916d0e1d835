package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// fakeServer is a control plane that accepts one token and counts rejected requests.
type fakeServer struct {
	*httptest.Server
	token            atomic.Pointer[string]
	rejectedRequests atomic.Int32
}

func newServer(t *testing.T, token string) *fakeServer {
	t.Helper()
	s := &fakeServer{}
	s.token.Store(&token)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "Bearer "+*s.token.Load() {
			s.rejectedRequests.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("welcome"))
	}))
	t.Cleanup(s.Close)
	return s
}

func kubeconfigFor(t *testing.T, s *fakeServer, token string) []byte {
	t.Helper()
	authority, err := cert.EncodeCertificates(s.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["karmada"] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: authority}
	config.AuthInfos["east"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "karmada", AuthInfo: "east"}
	config.CurrentContext = "it"
	encoded, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func writeFile(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "karmada.config")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func getStatus(ctx context.Context, config *rest.Config) (string, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api", nil)
	if err != nil {
		return "", err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	return fmt.Sprint(response.StatusCode), nil
}

func TestRejectedRequestsContinueWithNewCredentials(t *testing.T) {
	tests := map[string]func(t *testing.T, c *connection, kubeconfig []byte){
		"in the file": func(t *testing.T, c *connection, kubeconfig []byte) {
			if err := os.WriteFile(c.path, kubeconfig, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.reload(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"in the Secret, before the file is updated": func(t *testing.T, c *connection, kubeconfig []byte) {
			c.readSecret = func(context.Context) ([]byte, error) { return kubeconfig, nil }
			if err := c.reload(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"by the rotation": func(t *testing.T, c *connection, kubeconfig []byte) {
			if err := c.update(t.Context(), kubeconfig, "certificate rotation"); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, replace := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "old")
			c, err := newConnection(writeFile(t, kubeconfigFor(t, s, "old")), "", -1, 0)
			if err != nil {
				t.Fatal(err)
			}
			if status, err := getStatus(t.Context(), c.waitingConfig); err != nil || status != "200" {
				t.Fatalf("status %s, %v", status, err)
			}
			next := "new"
			s.token.Store(&next)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var requests sync.WaitGroup
			requests.Go(func() {
				if status, err := getStatus(ctx, c.waitingConfig); err != nil || status != "200" {
					t.Errorf("a rejected request got status %s, %v", status, err)
				}
			})
			select {
			case <-c.reloadRequests:
			case <-ctx.Done():
				t.Fatal("the agent did not notice that the control plane rejects its credentials")
			}
			replace(t, c, kubeconfigFor(t, s, next))
			requests.Wait()
			if rejected := s.rejectedRequests.Load(); rejected != 1 {
				t.Errorf("the control plane rejected %d requests", rejected)
			}
			if c.isRejected() {
				t.Error("the credentials still count as rejected")
			}
		})
	}
}

func TestInvalidKubeconfigKeepsTheCredentials(t *testing.T) {
	s := newServer(t, "old")
	c, err := newConnection(writeFile(t, kubeconfigFor(t, s, "old")), "", -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"not a kubeconfig":           "{",
		"no context":                 "apiVersion: v1\nkind: Config\n",
		"invalid client certificate": strings.Replace(string(kubeconfigFor(t, s, "x")), "token: x", "client-certificate-data: eA==\n    client-key-data: eA==", 1),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(c.path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.reload(t.Context()); err == nil || !strings.Contains(err.Error(), c.path) {
				t.Errorf("error %v, want one that names %s", err, c.path)
			}
			if status, err := getStatus(t.Context(), c.waitingConfig); err != nil || status != "200" {
				t.Errorf("status %s, %v", status, err)
			}
		})
	}
}

func TestInvalidKubeconfigAtTheStart(t *testing.T) {
	tests := map[string]struct{ path, context, wantErr string }{
		"missing file":               {path: filepath.Join(t.TempDir(), "none"), wantErr: "no such file"},
		"not a kubeconfig":           {path: writeFile(t, []byte("{")), wantErr: "given by --karmada-kubeconfig"},
		"unknown context":            {path: writeFile(t, kubeconfigFor(t, newServer(t, "x"), "x")), context: "other", wantErr: "context was not found for specified context: other"},
		"invalid client certificate": {path: writeFile(t, []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {user: u, cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: {client-certificate-data: eA==, client-key-data: eA==}}]\n")), wantErr: "parsing the client certificate"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := newConnection(test.path, test.context, -1, 0)
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want one that contains %q", err, test.wantErr)
			}
		})
	}
}
