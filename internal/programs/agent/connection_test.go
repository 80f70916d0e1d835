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

// server is a control plane that takes one token, and counts those it refused.
type server struct {
	*httptest.Server
	token   atomic.Pointer[string]
	refused atomic.Int32
}

func newServer(t *testing.T, token string) *server {
	t.Helper()
	s := &server{}
	s.token.Store(&token)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "Bearer "+*s.token.Load() {
			s.refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("welcome"))
	}))
	t.Cleanup(s.Close)
	return s
}

func kubeconfigFor(t *testing.T, s *server, token string) []byte {
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

func fileWith(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "karmada.config")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func ask(ctx context.Context, config *rest.Config) (string, error) {
	through, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api", nil)
	if err != nil {
		return "", err
	}
	response, err := through.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	return fmt.Sprint(response.StatusCode), nil
}

func TestRequestsGoOnWithCredentialsThatAreReplaced(t *testing.T) {
	tests := map[string]func(t *testing.T, c *connection, kubeconfig []byte){
		"in the file": func(t *testing.T, c *connection, kubeconfig []byte) {
			if err := os.WriteFile(c.path, kubeconfig, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"in the Secret, before the file knows": func(t *testing.T, c *connection, kubeconfig []byte) {
			c.secret = func(context.Context) ([]byte, error) { return kubeconfig, nil }
			if err := c.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"by the rotation": func(t *testing.T, c *connection, kubeconfig []byte) {
			if err := c.take(t.Context(), kubeconfig, "its rotation"); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, replace := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "old")
			c, err := connect(fileWith(t, kubeconfigFor(t, s, "old")), "", -1, 0)
			if err != nil {
				t.Fatal(err)
			}
			if answer, err := ask(t.Context(), c.waiting); err != nil || answer != "200" {
				t.Fatalf("answered %s, %v", answer, err)
			}
			next := "new"
			s.token.Store(&next)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var asking sync.WaitGroup
			asking.Go(func() {
				if answer, err := ask(ctx, c.waiting); err != nil || answer != "200" {
					t.Errorf("a request that was refused was answered %s, %v", answer, err)
				}
			})
			select {
			case <-c.wake:
			case <-ctx.Done():
				t.Fatal("nobody noticed that the control plane refuses the agent")
			}
			replace(t, c, kubeconfigFor(t, s, next))
			asking.Wait()
			if refused := s.refused.Load(); refused != 1 {
				t.Errorf("the control plane refused %d requests", refused)
			}
			if c.isRefused() {
				t.Error("the credentials count as refused still")
			}
		})
	}
}

func TestWhatCannotBeTakenLeavesTheCredentials(t *testing.T) {
	s := newServer(t, "old")
	c, err := connect(fileWith(t, kubeconfigFor(t, s, "old")), "", -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"is no kubeconfig":      "{",
		"has no context":        "apiVersion: v1\nkind: Config\n",
		"has a broken identity": strings.Replace(string(kubeconfigFor(t, s, "x")), "token: x", "client-certificate-data: eA==\n    client-key-data: eA==", 1),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(c.path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.look(t.Context()); err == nil || !strings.Contains(err.Error(), c.path) {
				t.Errorf("error %v, want one that names %s", err, c.path)
			}
			if answer, err := ask(t.Context(), c.waiting); err != nil || answer != "200" {
				t.Errorf("answered %s, %v", answer, err)
			}
		})
	}
}

func TestAKubeconfigThatCannotBeReadIsTold(t *testing.T) {
	tests := map[string]struct{ path, context, told string }{
		"there is no file":      {path: filepath.Join(t.TempDir(), "none"), told: "no such file"},
		"it is no kubeconfig":   {path: fileWith(t, []byte("{")), told: "that --karmada-kubeconfig names"},
		"it has no such place":  {path: fileWith(t, kubeconfigFor(t, newServer(t, "x"), "x")), context: "other", told: "context was not found for specified context: other"},
		"its certificate is no": {path: fileWith(t, []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {user: u, cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: {client-certificate-data: eA==, client-key-data: eA==}}]\n")), told: "its client certificate"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := connect(test.path, test.context, -1, 0)
			if err == nil || !strings.Contains(err.Error(), test.told) {
				t.Errorf("error %v, want one that tells %q", err, test.told)
			}
		})
	}
}
