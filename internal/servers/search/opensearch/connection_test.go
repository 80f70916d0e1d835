package opensearch_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http/httptest"
	"testing"
	"time"
)

func TestCredentials(t *testing.T) {
	s := newSetup(t)
	s.put(3)
	s.server.RequireUser("karmada", "secret")
	s.run(all(backend(s.server.AddNode(nil))))
	s.awaitState("east", "check the keys username and password of Secret ns/os")
	s.secrets.set("ns/os", map[string]string{"username": "karmada", "password": "wrong"})
	s.awaitState("east", "status 401")
	s.secrets.set("ns/os", map[string]string{"username": "karmada", "password": "secret"})
	s.awaitEqual(s.server, "east", "west")
	s.awaitHealthy("east")

	// A changed Secret replaces the connection, although the old one still works.
	s.server.RequireUser("karmada", "new")
	s.cache.Put("east", newObject(pods, "later"))
	s.awaitState("east", "status 401")
	s.secrets.set("ns/os", map[string]string{"username": "karmada", "password": "new"})
	s.awaitEqual(s.server, "east", "west")
}

func TestTLS(t *testing.T) {
	client, clientKey := newCertificate(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(client))
	withTLS := func(config *tls.Config) func(*httptest.Server) {
		return func(server *httptest.Server) {
			server.TLS = config
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // rejected handshakes
		}
	}
	tests := map[string]struct {
		server *tls.Config
		secret map[string]string
		// wantState is a part of the error. It is empty if the connection works.
		wantState string
	}{
		"a server of an unknown authority is rejected": {
			server: &tls.Config{}, secret: map[string]string{"username": "karmada"}, wantState: "certificate signed by unknown authority",
		},
		"the authority of the Secret is trusted": {server: &tls.Config{}, secret: map[string]string{"ca.crt": "SERVER"}},
		"the verification can be switched off":   {server: &tls.Config{}, secret: map[string]string{"insecureSkipVerify": "true\n"}},
		"a client certificate is sent": {
			server: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool},
			secret: map[string]string{"ca.crt": "SERVER", "tls.crt": client, "tls.key": clientKey},
		},
		"a missing client certificate is reported": {
			server: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool},
			secret: map[string]string{"ca.crt": "SERVER"}, wantState: "connecting to OpenSearch https://",
		},
		"an authority that is no PEM is reported": {
			server: &tls.Config{}, secret: map[string]string{"ca.crt": "x"}, wantState: "Secret ns/os: key ca.crt has no PEM certificate",
		},
		"a certificate without a key is reported": {
			server: &tls.Config{}, secret: map[string]string{"tls.crt": client}, wantState: "needs both keys tls.crt and tls.key",
		},
		"a key of another certificate is reported": {
			server: &tls.Config{}, secret: map[string]string{"tls.crt": client, "tls.key": "x"}, wantState: "keys tls.crt and tls.key",
		},
		"a switch that is no boolean is reported": {
			server: &tls.Config{}, secret: map[string]string{"insecureSkipVerify": "maybe"}, wantState: `"maybe" is neither true nor false`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.put(3)
			node := s.server.AddNode(withTLS(test.server.Clone()))
			if test.secret["ca.crt"] == "SERVER" {
				test.secret["ca.crt"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: node.Certificate()}))
			}
			if test.secret["username"] != "" {
				s.server.RequireUser(test.secret["username"], "")
			}
			s.secrets.set("ns/os", test.secret)
			s.run(all(backend(node)))
			if test.wantState != "" {
				s.awaitState("east", test.wantState)
				return
			}
			s.awaitEqual(s.server, "east", "west")
		})
	}
}

// newCertificate returns a certificate that signs itself, and its key.
func newCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "karmada-search"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}
