package member

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/cert"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestMain(m *testing.M) {
	// By default, clients look for a renewed certificate every five minutes.
	transport.CertCallbackRefreshDuration = 100 * time.Millisecond
	os.Exit(m.Run())
}

// clientKeyPair is a client certificate and its key in PEM format, and the files that contain them.
type clientKeyPair struct {
	certificate, key         []byte
	certificateFile, keyFile string
}

// renew replaces the certificate and the key, also in the files.
func (c *clientKeyPair) renew(t *testing.T, commonName string) {
	t.Helper()
	var err error
	if c.certificate, c.key, err = cert.GenerateSelfSignedCertKey(commonName, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(c.certificateFile, c.certificate, 0o600), os.WriteFile(c.keyFile, c.key, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// execPlugin returns the configuration of a plugin that returns the certificate.
func (c *clientKeyPair) execPlugin(t *testing.T) *clientcmdapi.ExecConfig {
	t.Helper()
	response, err := json.Marshal(clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status:   &clientauthenticationv1.ExecCredentialStatus{ClientCertificateData: string(c.certificate), ClientKeyData: string(c.key)},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "credential.json")
	if err := os.WriteFile(file, response, 0o600); err != nil {
		t.Fatal(err)
	}
	return &clientcmdapi.ExecConfig{
		APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Command: "cat", Args: []string{file},
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
}

// openLocal opens the member of a process that runs in the member, with a configuration of its own.
func openLocal(t *testing.T, server *identityServer, config *rest.Config) *Member {
	t.Helper()
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	config.Host, config.Insecure = server.URL, true
	w.members.options.LocalConfig = func(*clusterv1alpha1.Cluster) (*rest.Config, error) { return config, nil }
	w.cluster.Spec.ID = server.uid
	if err := w.karmada.Update(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	return w.mustGet(t)
}

// TestIdentityIsProvenForClientCertificates uses certificates from all sources, because client-go
// wraps the connections of those certificates that can change.
func TestIdentityIsProvenForClientCertificates(t *testing.T) {
	for name, setSource := range map[string]func(*testing.T, *rest.Config, *clientKeyPair){
		"data": func(_ *testing.T, config *rest.Config, pair *clientKeyPair) {
			config.CertData, config.KeyData = pair.certificate, pair.key
		},
		"files": func(_ *testing.T, config *rest.Config, pair *clientKeyPair) {
			config.CertFile, config.KeyFile = pair.certificateFile, pair.keyFile
		},
		"an exec plugin": func(t *testing.T, config *rest.Config, pair *clientKeyPair) { config.ExecProvider = pair.execPlugin(t) },
	} {
		for protocol, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				server, pair := newCertificateServer(t, http2), newClientKeyPair(t, "agent")
				config := &rest.Config{}
				setSource(t, config, pair)
				target := openLocal(t, server, config)
				for range 3 {
					if err := createConfigMap(t, target); err != nil {
						t.Fatal(err)
					}
				}
				if health := target.Probe(t.Context()); !health.Healthy || !health.Identity.Proven {
					t.Errorf("the probe returns %+v", health)
				}
				if asked, writes := server.requests(); asked > 3 || len(writes) != 3 {
					t.Errorf("the member got %d identity reads and the requests %v, want at most 3 identity reads and 3 writes", asked, writes)
				}
			})
		}
	}
}

func TestRenewedCertificateFilesAreUsed(t *testing.T) {
	server, pair := newCertificateServer(t, true), newClientKeyPair(t, "old")
	target := openLocal(t, server, &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: pair.certificateFile, KeyFile: pair.keyFile}})
	if err := createConfigMap(t, target); err != nil {
		t.Fatal(err)
	}
	pair.renew(t, "new")
	renewed, err := tls.X509KeyPair(pair.certificate, pair.key)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		// A request can fail while its connection is closed.
		_ = createConfigMap(t, target)
		server.mu.Lock()
		defer server.mu.Unlock()
		return server.clientCertificate.Equal(renewed.Leaf), nil
	})
	if err != nil {
		t.Errorf("the member does not receive the renewed certificate: %v", err)
	}
	if err := createConfigMap(t, target); err != nil {
		t.Errorf("with the renewed certificate: %v", err)
	}
}

func newClientKeyPair(t *testing.T, commonName string) *clientKeyPair {
	t.Helper()
	dir := t.TempDir()
	pair := &clientKeyPair{certificateFile: filepath.Join(dir, "client.crt"), keyFile: filepath.Join(dir, "client.key")}
	pair.renew(t, commonName)
	return pair
}

// newCertificateServer starts the API server of a cluster that requires client certificates.
func newCertificateServer(t *testing.T, http2 bool) *identityServer {
	t.Helper()
	s := &identityServer{uid: "right"}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2, s.TLS = http2, &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}
