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
	"karmada.io/karmada/internal/registration/bootstraptoken"
	"karmada.io/karmada/internal/registration/side/sidetest"
)

var knownToken = bootstraptoken.Token{ID: "abcdef", Secret: "0123456789abcdef"}

// clusterInfo is a kubeconfig with clusters of these certificate authorities.
func clusterInfo(t *testing.T, authorities ...[]byte) string {
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

func signed(t *testing.T, kubeconfig string, by bootstraptoken.Token) corev1.ConfigMap {
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

// otherAuthority is a certificate authority of somebody else.
func otherAuthority(t *testing.T) []byte {
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

// answerReview says that a token may all, or that there is no such token.
func answerReview(w http.ResponseWriter, known bool) {
	w.Header().Set("Content-Type", "application/json")
	if !known {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
}

func TestTheControlPlaneIsTrustedForGoodReasonsOnly(t *testing.T) {
	// answers are what the server says to the first request, the second and so on;
	// the last one is repeated.
	var answers []func() (int, corev1.ConfigMap)
	var (
		asked atomic.Int32
		known atomic.Bool
	)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" && r.Header.Get("Authorization") == "Bearer "+knownToken.String() {
			answerReview(w, known.Load())
			return
		}
		if r.URL.Path != "/api/v1/namespaces/kube-public/configmaps/cluster-info" || r.Header.Get("Authorization") != "" {
			t.Errorf("asked for %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		code, info := answers[min(int(asked.Add(1)), len(answers))-1]()
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
	pin, other := bootstraptoken.PinOf(server.Certificate()).String(), otherAuthority(t)
	says := func(info corev1.ConfigMap) func() (int, corev1.ConfigMap) {
		return func() (int, corev1.ConfigMap) { return http.StatusOK, info }
	}
	fails := func(code int) func() (int, corev1.ConfigMap) {
		return func() (int, corev1.ConfigMap) { return code, corev1.ConfigMap{} }
	}
	fine := signed(t, clusterInfo(t, ca), knownToken)
	unsigned := *fine.DeepCopy()
	delete(unsigned.Data, "jws-kubeconfig-abcdef")
	forged := signed(t, clusterInfo(t, ca), bootstraptoken.Token{ID: "abcdef", Secret: "fedcba9876543210"})
	tests := map[string]struct {
		answers []func() (int, corev1.ConfigMap)
		pins    []string
		unknown bool
		ca      string
		want    string
	}{
		"signed, pinned and confirmed":             {answers: []func() (int, corev1.ConfigMap){says(fine)}, pins: []string{pin}, ca: string(ca)},
		"one of several pins fits":                 {answers: []func() (int, corev1.ConfigMap){says(fine)}, pins: []string{"sha256:" + strings.Repeat("00", 32), pin}, ca: string(ca)},
		"signed later":                             {answers: []func() (int, corev1.ConfigMap){fails(503), says(unsigned), says(fine)}, pins: []string{pin}, ca: string(ca)},
		"not pinned on purpose":                    {answers: []func() (int, corev1.ConfigMap){says(fine)}, ca: string(ca)},
		"an authority beside the pinned one":       {answers: []func() (int, corev1.ConfigMap){says(signed(t, clusterInfo(t, append(append([]byte{}, other...), ca...)), knownToken))}, pins: []string{pin}, ca: string(ca)},
		"signed with another secret":               {answers: []func() (int, corev1.ConfigMap){says(forged)}, pins: []string{pin}, want: "was not signed with the secret of token abcdef"},
		"another authority":                        {answers: []func() (int, corev1.ConfigMap){says(signed(t, clusterInfo(t, other), knownToken))}, pins: []string{pin}, want: "is none of those given"},
		"a pinned authority of another server":     {answers: []func() (int, corev1.ConfigMap){says(signed(t, clusterInfo(t, other), knownToken))}, pins: pinsOf(t, other), want: "cannot be trusted"},
		"something else once it is trusted":        {answers: []func() (int, corev1.ConfigMap){says(fine), says(signed(t, clusterInfo(t, ca)+"\n", knownToken))}, pins: []string{pin}, want: "says something else"},
		"two clusters":                             {answers: []func() (int, corev1.ConfigMap){says(signed(t, clusterInfo(t, ca, ca), knownToken))}, pins: []string{pin}, want: "must hold one cluster and holds 2"},
		"no cluster":                               {answers: []func() (int, corev1.ConfigMap){says(signed(t, clusterInfo(t), knownToken))}, pins: []string{pin}, want: "must hold one cluster and holds 0"},
		"no authority":                             {answers: []func() (int, corev1.ConfigMap){says(signed(t, clusterInfo(t, nil), knownToken))}, pins: []string{pin}, want: "holds no certificate authority"},
		"an authority of rubble":                   {answers: []func() (int, corev1.ConfigMap){says(signed(t, clusterInfo(t, []byte("x")), knownToken))}, pins: []string{pin}, want: "reading the certificate authorities"},
		"a token that nobody knows any more":       {answers: []func() (int, corev1.ConfigMap){says(unsigned)}, pins: []string{pin}, unknown: true, want: "the control plane does not know the token"},
		"not signed, by another authority":         {answers: []func() (int, corev1.ConfigMap){says(signed(t, clusterInfo(t, other), bootstraptoken.Token{ID: "zzzzzz", Secret: knownToken.Secret}))}, pins: []string{pin}, want: "is none of those given"},
		"never signed":                             {answers: []func() (int, corev1.ConfigMap){says(unsigned)}, pins: []string{pin}, want: "The token is unknown there, has expired"},
		"no cluster-info":                          {answers: []func() (int, corev1.ConfigMap){fails(404)}, pins: []string{pin}, want: "ConfigMap kube-public/cluster-info is missing"},
		"not allowed to see it":                    {answers: []func() (int, corev1.ConfigMap){fails(403)}, pins: []string{pin}, want: "not readable for everybody"},
		"a server that is always about to come up": {answers: []func() (int, corev1.ConfigMap){fails(503)}, pins: []string{pin}, want: "Check host and port"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answers = test.answers
			asked.Store(0)
			known.Store(!test.unknown)
			register := Register{
				Endpoint: strings.TrimPrefix(server.URL, "https://"), Token: knownToken.String(),
				CAHashes: test.pins, SkipCAVerification: len(test.pins) == 0, Timeout: 20 * time.Second, Log: t.Logf,
			}
			if test.want != "" && !test.unknown {
				register.Timeout = 300 * time.Millisecond
			}
			found, err := register.discover(t.Context())
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
	return []string{bootstraptoken.PinOf(certificate).String()}
}

func FuzzAuthorities(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\nclusters: [{name: '', cluster: {server: x, certificate-authority-data: eA==}}]"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		ca, err := authorities(kubeconfig)
		if err == nil && len(ca) == 0 {
			t.Error("no certificate authority and no error")
		}
		_, _ = pinned(ca, nil)
	})
}

func TestAControlPlaneDoesNotRegisterWithItself(t *testing.T) {
	kubeconfig := clusterInfo(t, otherAuthority(t))
	own := signed(t, kubeconfig, knownToken)
	foreign := signed(t, kubeconfig, bootstraptoken.Token{ID: "other1", Secret: knownToken.Secret})
	forged := signed(t, kubeconfig, bootstraptoken.Token{ID: knownToken.ID, Secret: "aaaaaaaaaaaaaaaa"})
	tests := map[string]struct {
		stored []client.Object
		itself bool
	}{
		"its cluster-info bears the signature of the token": {stored: []client.Object{&own}, itself: true},
		"that of another token":                             {stored: []client.Object{&foreign}},
		"one by somebody who does not know the token":       {stored: []client.Object{&forged}},
		"a member without cluster-info":                     {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Register{Token: knownToken.String()}.refuseItself(t.Context(), sidetest.With(t, "", test.stored...))
			if (err != nil) != test.itself {
				t.Errorf("refuseItself() = %v, want an error: %t", err, test.itself)
			}
		})
	}
}

func TestARegistrationEndsWithTheCluster(t *testing.T) {
	register := Register{Name: "east", Endpoint: "192.0.2.1:5443", Timeout: 20 * time.Millisecond}
	if err := register.awaitCluster(t.Context(), sidetest.With(t, "")); err == nil || !strings.Contains(err.Error(), "made no Cluster within 20ms") {
		t.Errorf("without a Cluster: %v", err)
	}
	made := sidetest.Registered("east", "id", clusterv1alpha1.Pull)
	if err := register.awaitCluster(t.Context(), sidetest.With(t, "", &made)); err != nil {
		t.Errorf("with a Cluster: %v", err)
	}
}
