package certrotation

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/internal/domain/agent"
)

// authority signs certificates in a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key}
}

func (a authority) sign(t *testing.T, subject pkix.Name, public any, from, until time.Time) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: subject, NotBefore: from, NotAfter: until}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

var subject = pkix.Name{CommonName: "system:karmada:agent:east", Organization: []string{"system:karmada:agents"}}

// kubeconfig is that of an agent whose certificate is valid in a time.
func kubeconfig(t *testing.T, by authority, from, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["karmada-apiserver"] = &clientcmdapi.Cluster{Server: "https://karmada"}
	config.AuthInfos["east"] = &clientcmdapi.AuthInfo{ClientCertificateData: by.sign(t, subject, key.Public(), from, until), ClientKeyData: keyPEM}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "karmada-apiserver", AuthInfo: "east"}
	config.CurrentContext = "it"
	encoded, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func secretWith(kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: SecretName},
		Data:       map[string][]byte{SecretKey: kubeconfig, "other": []byte("kept")},
	}
}

// controlPlane answers requests for certificates as decided.
func controlPlane(decide func(*certificatesv1.CertificateSigningRequest)) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, karmada client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			decide(object.(*certificatesv1.CertificateSigningRequest))
			return karmada.Create(ctx, object)
		},
	}).Build()
}

func TestACertificateIsRotatedInTheLastPartOfItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by, from := newAuthority(t), time.Now()
		var asking atomic.Pointer[certificatesv1.CertificateSigningRequest]
		karmada := controlPlane(func(request *certificatesv1.CertificateSigningRequest) {
			asking.Store(request.DeepCopy())
			block, _ := pem.Decode(request.Spec.Request)
			parsed, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			request.Status.Certificate = by.sign(t, parsed.Subject, parsed.PublicKey, time.Now(), time.Now().Add(100*time.Hour))
		})
		member := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(secretWith(kubeconfig(t, by, from, from.Add(100*time.Hour)))).Build()
		var told []byte
		o := DefaultOptions()
		o.Member, o.Renewed = member, func(kubeconfig []byte) { told = kubeconfig }
		r := &rotator{options: o, karmada: karmada, live: karmada, now: time.Now}

		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- r.Start(ctx) }()
		<-time.After(79 * time.Hour)
		if asking.Load() != nil {
			t.Fatal("a certificate was asked for too early")
		}
		<-time.After(2 * time.Hour)
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		asked := asking.Load()

		secret := &corev1.Secret{}
		if err := member.Get(t.Context(), client.ObjectKeyFromObject(secretWith(nil)), secret); err != nil {
			t.Fatal(err)
		}
		held, err := parse(secret.Data[SecretKey], "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(subject.String(), held.chain[0].Subject.String()); diff != "" {
			t.Errorf("subject (-want +got):\n%s", diff)
		}
		if left := held.chain[0].NotAfter.Sub(from); left < 179*time.Hour {
			t.Errorf("it ends after %s", left)
		}
		user := held.kubeconfig.AuthInfos["east"]
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			t.Errorf("certificate and key: %v", err)
		}
		if diff := cmp.Diff(string(secret.Data[SecretKey]), string(told)); diff != "" {
			t.Errorf("told another kubeconfig than was stored (-want +got):\n%s", diff)
		}
		if string(secret.Data["other"]) != "kept" {
			t.Error("other keys of the Secret are lost")
		}
		if !strings.HasPrefix(asked.Name, "east-") || len(asked.Name) != len("east-")+5 {
			t.Errorf("the request is called %s", asked.Name)
		}
		if got := *asked.Spec.ExpirationSeconds; got != 100*3600 {
			t.Errorf("a life of %d seconds was asked for", got)
		}
	})
}

func TestTheCertificateIsThatOfTheContextInUse(t *testing.T) {
	by, now := newAuthority(t), time.Now()
	config, err := clientcmd.Load(kubeconfig(t, by, now.Add(-99*time.Hour), now.Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["other"] = &clientcmdapi.Context{Cluster: "karmada-apiserver", AuthInfo: "admin"}
	config.CurrentContext = "other"
	encoded, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	karmada := controlPlane(func(request *certificatesv1.CertificateSigningRequest) {
		asked = append(asked, request.Name[:len(request.Name)-len("-12345")])
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
	})
	o := DefaultOptions()
	o.Context, o.Member = "it", fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(secretWith(encoded)).Build()
	err = (&rotator{options: o, karmada: karmada, live: karmada, now: time.Now}).check(t.Context())
	if diff := cmp.Diff([]string{"east"}, asked); diff != "" {
		t.Errorf("certificates are asked for, of (-want +got):\n%s\nerror %v", diff, err)
	}
}

func TestWhyACertificateIsNotRotated(t *testing.T) {
	nothing := func(*certificatesv1.CertificateSigningRequest) {}
	tests := map[string]struct {
		secret func(t *testing.T, by authority) *corev1.Secret
		decide func(*certificatesv1.CertificateSigningRequest)
		told   string
	}{
		"there is no Secret": {
			secret: func(*testing.T, authority) *corev1.Secret {
				other := secretWith(nil)
				other.Name = "other"
				return other
			},
			told: "Secret karmada-system/karmada-kubeconfig of the member, see --karmada-kubeconfig-namespace",
		},
		"it is empty":         {secret: func(*testing.T, authority) *corev1.Secret { return secretWith(nil) }, told: "it is empty"},
		"it is no kubeconfig": {secret: func(*testing.T, authority) *corev1.Secret { return secretWith([]byte("{")) }, told: "it is no kubeconfig"},
		"it has a token": {
			secret: func(*testing.T, authority) *corev1.Secret {
				return secretWith([]byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {user: u}}]\nusers: [{name: u, user: {token: t}}]\n"))
			},
			told: "switch certRotation off",
		},
		"nobody approves": {decide: nothing, told: "kubectl certificate approve east-"},
		"it is left to people": {
			decide: func(request *certificatesv1.CertificateSigningRequest) {
				request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: agent.NotApproved, Reason: "ClusterNotRegistered", Message: "there is no such cluster"}}
			},
			told: "was not approved automatically: there is no such cluster; a person can do so by 'kubectl certificate approve",
		},
		"it was denied": {
			decide: func(request *certificatesv1.CertificateSigningRequest) {
				request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Reason: "Policy", Message: "not you"}}
			},
			told: "was not granted (Denied): Policy not you",
		},
		"the certificate is for another key": {
			decide: func(request *certificatesv1.CertificateSigningRequest) {
				request.Status.Certificate = []byte("no certificate")
			},
			told: "does not fit the key",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				by, now := newAuthority(t), time.Now()
				secret := secretWith(kubeconfig(t, by, now.Add(-99*time.Hour), now.Add(time.Hour)))
				if test.secret != nil {
					secret = test.secret(t, by)
				}
				before := string(secret.Data[SecretKey])
				decide := test.decide
				if decide == nil {
					decide = nothing
				}
				karmada := controlPlane(decide)
				o := DefaultOptions()
				o.Member = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(secret).Build()
				r := &rotator{options: o, karmada: karmada, live: karmada, now: time.Now}
				err := r.check(t.Context())
				if err == nil || !strings.Contains(err.Error(), test.told) {
					t.Errorf("error %v, want one that tells %q", err, test.told)
				}
				after := &corev1.Secret{}
				if err := o.Member.Get(t.Context(), client.ObjectKeyFromObject(secret), after); err != nil {
					t.Fatal(err)
				}
				if string(after.Data[SecretKey]) != before {
					t.Error("the Secret was changed")
				}
			})
		})
	}
}

func TestWhatIsNotAnsweredIsNotAskedAgain(t *testing.T) {
	unanswered := func(*certificatesv1.CertificateSigningRequest) {}
	tests := map[string]struct {
		decide  func(*certificatesv1.CertificateSigningRequest)
		between func(t *testing.T, karmada client.Client)
		want    int
	}{
		"one that nobody has answered": {decide: unanswered, want: 1},
		"one that was denied": {decide: func(request *certificatesv1.CertificateSigningRequest) {
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
		}, want: 4},
		// It takes a look to see that it is gone.
		"one that somebody deletes": {decide: unanswered, want: 2, between: func(t *testing.T, karmada client.Client) {
			if err := karmada.DeleteAllOf(t.Context(), &certificatesv1.CertificateSigningRequest{}); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				by, now, count := newAuthority(t), time.Now(), 0
				karmada := controlPlane(func(request *certificatesv1.CertificateSigningRequest) {
					count++
					test.decide(request)
				})
				o := DefaultOptions()
				o.Member = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(secretWith(kubeconfig(t, by, now.Add(-99*time.Hour), now.Add(time.Hour)))).Build()
				r := &rotator{options: o, karmada: karmada, live: karmada, now: time.Now}
				for range 4 {
					if err := r.check(t.Context()); err == nil {
						t.Fatal("a certificate was issued")
					}
					if test.between != nil {
						test.between(t, karmada)
					}
				}
				if count != test.want {
					t.Errorf("asked %d times, want %d", count, test.want)
				}
			})
		})
	}
}

func TestACertificateThatCouldNotBeStoredIsStoredNextTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by, now, count, full := newAuthority(t), time.Now(), 0, true
		karmada := controlPlane(func(request *certificatesv1.CertificateSigningRequest) {
			count++
			block, _ := pem.Decode(request.Spec.Request)
			parsed, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			request.Status.Certificate = by.sign(t, parsed.Subject, parsed.PublicKey, time.Now(), time.Now().Add(100*time.Hour))
		})
		o := DefaultOptions()
		o.Member = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(secretWith(kubeconfig(t, by, now.Add(-99*time.Hour), now.Add(time.Hour)))).
			WithInterceptorFuncs(interceptor.Funcs{Update: func(ctx context.Context, member client.WithWatch, object client.Object, options ...client.UpdateOption) error {
				if full {
					return errors.New("no space left")
				}
				return member.Update(ctx, object, options...)
			}}).Build()
		r := &rotator{options: o, karmada: karmada, live: karmada, now: time.Now}
		if err := r.check(t.Context()); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("error %v", err)
		}
		full = false
		if err := r.check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if count != 1 {
			t.Errorf("asked %d times, want once", count)
		}
	})
}

func TestHowLongALifeIsAskedFor(t *testing.T) {
	tests := map[string]struct{ life, want time.Duration }{
		"as long as that of the one before":        {100 * time.Hour, 100 * time.Hour},
		"as short, where an API server takes that": {10 * time.Minute, 10 * time.Minute},
		"and no shorter":                           {5 * time.Minute, 10 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			by, from, got := newAuthority(t), time.Now().Add(-time.Hour), int32(0)
			karmada := controlPlane(func(request *certificatesv1.CertificateSigningRequest) { got = *request.Spec.ExpirationSeconds })
			held, err := parse(kubeconfig(t, by, from, from.Add(test.life)), "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (&rotator{options: DefaultOptions(), karmada: karmada, live: karmada, now: time.Now}).ask(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			if got != int32(test.want.Seconds()) {
				t.Errorf("a life of %d seconds was asked for, want %s", got, test.want)
			}
		})
	}
}

func TestDue(t *testing.T) {
	now := time.Now()
	valid := func(from, until time.Duration) *x509.Certificate {
		return &x509.Certificate{NotBefore: now.Add(from), NotAfter: now.Add(until)}
	}
	tests := map[string]struct {
		chain []*x509.Certificate
		want  bool
	}{
		"a young one":                                     {[]*x509.Certificate{valid(-time.Hour, 9*time.Hour)}, false},
		"one with a fifth left":                           {[]*x509.Certificate{valid(-8*time.Hour, 2*time.Hour)}, true},
		"one with a little more than a fifth left":        {[]*x509.Certificate{valid(-8*time.Hour, 2*time.Hour+time.Minute)}, false},
		"one that is over":                                {[]*x509.Certificate{valid(-8*time.Hour, -time.Hour)}, true},
		"the first of a chain to end counts":              {[]*x509.Certificate{valid(-time.Hour, 9*time.Hour), valid(-9*time.Hour, time.Hour)}, false},
		"the time in which all of a chain are valid does": {[]*x509.Certificate{valid(-8*time.Hour, 9*time.Hour), valid(-9*time.Hour, time.Hour)}, true},
		"a chain that is never valid":                     {[]*x509.Certificate{valid(time.Hour, 9*time.Hour), valid(-9*time.Hour, -time.Hour)}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := due(test.chain, 0.2, now); got != test.want {
				t.Errorf("due: %t, want %t", got, test.want)
			}
		})
	}
}
