package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a certificate for 127.0.0.1 and its key, and returns the certificate.
func writeCertificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for path, content := range map[string][]byte{certFile: certificate, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return pool
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func TestServerAnswersUntilItEnds(t *testing.T) {
	directory := t.TempDir()
	certFile, keyFile := filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	authorities := writeCertificate(t, certFile, keyFile)
	ctx, stop := context.WithCancel(t.Context())
	listener, ended := listen(t), make(chan error, 1)
	go func() { ended <- serve(ctx, listener, certFile, keyFile) }()

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}
	defer transport.CloseIdleConnections()
	const body = `{"request":{"uid":"1","operation":"InterpretReplica","object":{"spec":{"replicas":3}}}}`
	response, err := (&http.Client{Transport: transport}).Post("https://"+listener.Addr().String()+"/interpret", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || !bytes.Contains(answer, []byte(`"uid":"1","successful":true,"status":{"code":200},"replicas":3`)) {
		t.Errorf("answer %s, error %v", answer, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServerNeedsACertificate(t *testing.T) {
	err := serve(t.Context(), listen(t), "missing.crt", "missing.key")
	if err == nil || !strings.Contains(err.Error(), "missing.crt") {
		t.Errorf("err = %v", err)
	}
}
