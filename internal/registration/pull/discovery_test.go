package pull

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/cluster-bootstrap/token/jws"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

var testToken = registration.Token{ID: "abcdef", Secret: "0123456789abcdef"}

// newClusterInfoKubeconfig returns a kubeconfig that contains one cluster for each of the certificate
// authorities.
func newClusterInfoKubeconfig(t *testing.T, authorities ...[]byte) string {
	t.Helper()
	config := clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{}}
	for i, ca := range authorities {
		config.Clusters[strings.Repeat("x", i)] = &clientcmdapi.Cluster{Server: "https://elsewhere", CertificateAuthorityData: ca}
	}
	encoded, err := clientcmd.Write(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func newSignedClusterInfo(t *testing.T, kubeconfig string, by registration.Token) corev1.ConfigMap {
	t.Helper()
	signature, err := jws.ComputeDetachedSignature(kubeconfig, by.ID, by.Secret)
	if err != nil {
		t.Fatal(err)
	}
	return corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"},
		Data:       map[string]string{"kubeconfig": kubeconfig, "jws-kubeconfig-" + by.ID: signature},
	}
}

// newOtherCA returns a certificate authority that differs from the server's.
func newOtherCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "other"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// writeAccessReview writes an access review that permits everything or, if the token is not known, the
// error Unauthorized.
func writeAccessReview(w http.ResponseWriter, isKnown bool) {
	w.Header().Set("Content-Type", "application/json")
	if !isKnown {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
}

func TestDiscoverControlPlane(t *testing.T) {
	// responses are the responses to the first request, the second request and so on. The last response
	// is repeated.
	var responses []func() (int, corev1.ConfigMap)
	var (
		requests atomic.Int32
		isKnown  atomic.Bool
	)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" && r.Header.Get("Authorization") == "Bearer "+testToken.String() {
			writeAccessReview(w, isKnown.Load())
			return
		}
		if r.URL.Path != "/api/v1/namespaces/kube-public/configmaps/cluster-info" || r.Header.Get("Authorization") != "" {
			t.Errorf("unexpected request for %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		code, info := responses[min(int(requests.Add(1)), len(responses))-1]()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if code != http.StatusOK {
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code)
			return
		}
		_ = json.NewEncoder(w).Encode(info)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	pin, other := registration.NewPin(server.Certificate()).String(), newOtherCA(t)
	returns := func(info corev1.ConfigMap) func() (int, corev1.ConfigMap) {
		return func() (int, corev1.ConfigMap) { return http.StatusOK, info }
	}
	fails := func(code int) func() (int, corev1.ConfigMap) {
		return func() (int, corev1.ConfigMap) { return code, corev1.ConfigMap{} }
	}
	valid := newSignedClusterInfo(t, newClusterInfoKubeconfig(t, ca), testToken)
	unsigned := *valid.DeepCopy()
	delete(unsigned.Data, "jws-kubeconfig-abcdef")
	forged := newSignedClusterInfo(t, newClusterInfoKubeconfig(t, ca), registration.Token{ID: "abcdef", Secret: "fedcba9876543210"})
	tests := map[string]struct {
		responses []func() (int, corev1.ConfigMap)
		pins      []string
		unknown   bool
		ca        string
		want      string
	}{
		"signed, pinned and confirmed":                             {responses: []func() (int, corev1.ConfigMap){returns(valid)}, pins: []string{pin}, ca: string(ca)},
		"one of several pins fits":                                 {responses: []func() (int, corev1.ConfigMap){returns(valid)}, pins: []string{"sha256:" + strings.Repeat("00", 32), pin}, ca: string(ca)},
		"signed after some requests":                               {responses: []func() (int, corev1.ConfigMap){fails(503), returns(unsigned), returns(valid)}, pins: []string{pin}, ca: string(ca)},
		"not pinned on purpose":                                    {responses: []func() (int, corev1.ConfigMap){returns(valid)}, ca: string(ca)},
		"an authority beside the pinned one":                       {responses: []func() (int, corev1.ConfigMap){returns(newSignedClusterInfo(t, newClusterInfoKubeconfig(t, append(append([]byte{}, other...), ca...)), testToken))}, pins: []string{pin}, ca: string(ca)},
		"signed with another secret":                               {responses: []func() (int, corev1.ConfigMap){returns(forged)}, pins: []string{pin}, want: "was not signed with the secret of token abcdef"},
		"another authority":                                        {responses: []func() (int, corev1.ConfigMap){returns(newSignedClusterInfo(t, newClusterInfoKubeconfig(t, other), testToken))}, pins: []string{pin}, want: "matches none of the given hashes"},
		"a pinned authority of another server":                     {responses: []func() (int, corev1.ConfigMap){returns(newSignedClusterInfo(t, newClusterInfoKubeconfig(t, other), testToken))}, pins: pinsOf(t, other), want: "cannot be trusted"},
		"a different cluster-info once the connection is verified": {responses: []func() (int, corev1.ConfigMap){returns(valid), returns(newSignedClusterInfo(t, newClusterInfoKubeconfig(t, ca)+"\n", testToken))}, pins: []string{pin}, want: "differs over a verified connection"},
		"two clusters":                                             {responses: []func() (int, corev1.ConfigMap){returns(newSignedClusterInfo(t, newClusterInfoKubeconfig(t, ca, ca), testToken))}, pins: []string{pin}, want: "must hold one cluster and holds 2"},
		"no cluster":                                               {responses: []func() (int, corev1.ConfigMap){returns(newSignedClusterInfo(t, newClusterInfoKubeconfig(t), testToken))}, pins: []string{pin}, want: "must hold one cluster and holds 0"},
		"no authority":                                             {responses: []func() (int, corev1.ConfigMap){returns(newSignedClusterInfo(t, newClusterInfoKubeconfig(t, nil), testToken))}, pins: []string{pin}, want: "holds no certificate authority"},
		"a malformed authority":                                    {responses: []func() (int, corev1.ConfigMap){returns(newSignedClusterInfo(t, newClusterInfoKubeconfig(t, []byte("x")), testToken))}, pins: []string{pin}, want: "reading the certificate authorities"},
		"a token that the control plane does not know":             {responses: []func() (int, corev1.ConfigMap){returns(unsigned)}, pins: []string{pin}, unknown: true, want: "the control plane does not know the token"},
		"not signed, by another authority":                         {responses: []func() (int, corev1.ConfigMap){returns(newSignedClusterInfo(t, newClusterInfoKubeconfig(t, other), registration.Token{ID: "zzzzzz", Secret: testToken.Secret}))}, pins: []string{pin}, want: "matches none of the given hashes"},
		"never signed":                                             {responses: []func() (int, corev1.ConfigMap){returns(unsigned)}, pins: []string{pin}, want: "The token is unknown there, has expired"},
		"no cluster-info":                                          {responses: []func() (int, corev1.ConfigMap){fails(404)}, pins: []string{pin}, want: "ConfigMap kube-public/cluster-info is missing"},
		"cluster-info is Forbidden":                                {responses: []func() (int, corev1.ConfigMap){fails(403)}, pins: []string{pin}, want: "not readable without authentication"},
		"a server that is always unavailable":                      {responses: []func() (int, corev1.ConfigMap){fails(503)}, pins: []string{pin}, want: "Check host and port"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			responses = test.responses
			requests.Store(0)
			isKnown.Store(!test.unknown)
			register := Register{
				Endpoint: strings.TrimPrefix(server.URL, "https://"), Token: testToken.String(),
				CAHashes: test.pins, SkipCAVerification: len(test.pins) == 0, Timeout: 20 * time.Second, Log: t.Logf,
			}
			if test.want != "" && !test.unknown {
				register.Timeout = 300 * time.Millisecond
			}
			found, err := register.discoverControlPlane(t.Context())
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if found.host != server.URL || string(found.ca) != test.ca {
				t.Errorf("found %s with\n%s", found.host, found.ca)
			}
		})
	}
}

func pinsOf(t *testing.T, ca []byte) []string {
	t.Helper()
	block, _ := pem.Decode(ca)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return []string{registration.NewPin(certificate).String()}
}

func FuzzCABundle(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\nclusters: [{name: '', cluster: {server: x, certificate-authority-data: eA==}}]"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		ca, err := caBundle(kubeconfig)
		if err == nil && len(ca) == 0 {
			t.Error("no certificate authority and no error")
		}
		_, _ = onlyPinned(ca, nil)
	})
}

func TestRejectControlPlane(t *testing.T) {
	kubeconfig := newClusterInfoKubeconfig(t, newOtherCA(t))
	signed := newSignedClusterInfo(t, kubeconfig, testToken)
	signedWithOtherToken := newSignedClusterInfo(t, kubeconfig, registration.Token{ID: "other1", Secret: testToken.Secret})
	forged := newSignedClusterInfo(t, kubeconfig, registration.Token{ID: testToken.ID, Secret: "aaaaaaaaaaaaaaaa"})
	tests := map[string]struct {
		stored         []client.Object
		isControlPlane bool
	}{
		"cluster-info is signed with the token":     {stored: []client.Object{&signed}, isControlPlane: true},
		"cluster-info is signed with another token": {stored: []client.Object{&signedWithOtherToken}},
		"cluster-info has a forged signature":       {stored: []client.Object{&forged}},
		"a member without cluster-info":             {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Register{Token: testToken.String()}.rejectControlPlane(t.Context(), clusterclienttest.NewClient(t, "", test.stored...))
			if (err != nil) != test.isControlPlane {
				t.Errorf("refuseItself() = %v, want an error: %t", err, test.isControlPlane)
			}
		})
	}
}

func TestAwaitCluster(t *testing.T) {
	register := Register{Name: "east", Endpoint: "192.0.2.1:5443", Timeout: 20 * time.Millisecond}
	if err := register.awaitCluster(t.Context(), clusterclienttest.NewClient(t, "")); err == nil || !strings.Contains(err.Error(), "created no Cluster within 20ms") {
		t.Errorf("without a Cluster: %v", err)
	}
	created := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Pull)
	if err := register.awaitCluster(t.Context(), clusterclienttest.NewClient(t, "", &created)); err != nil {
		t.Errorf("with a Cluster: %v", err)
	}
}
