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
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/loop/looptest"
)

// authority is a certificate authority for tests.
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

// newKubeconfig returns the kubeconfig of an agent whose certificate is valid in the given
// period.
func newKubeconfig(t *testing.T, ca authority, from, until time.Time) []byte {
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
	config.AuthInfos["east"] = &clientcmdapi.AuthInfo{ClientCertificateData: ca.sign(t, subject, key.Public(), from, until), ClientKeyData: keyPEM}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "karmada-apiserver", AuthInfo: "east"}
	config.CurrentContext = "it"
	encoded, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func newSecret(kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: SecretName},
		Data:       map[string][]byte{SecretKey: kubeconfig, "other": []byte("kept")},
	}
}

func newClientBuilder(t *testing.T) *fake.ClientBuilder {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(looptest.NewScheme(t, corev1.AddToScheme, certificatesv1.AddToScheme))
}

// newControlPlane returns a client of a control plane in which the function decide decides on
// certificate signing requests.
func newControlPlane(t *testing.T, decide func(*certificatesv1.CertificateSigningRequest)) client.WithWatch {
	t.Helper()
	return newClientBuilder(t).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, karmada client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			decide(object.(*certificatesv1.CertificateSigningRequest))
			return karmada.Create(ctx, object)
		},
	}).Build()
}

func TestCertificateIsRotatedWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, from := newAuthority(t), time.Now()
		var created atomic.Pointer[certificatesv1.CertificateSigningRequest]
		karmada := newControlPlane(t, func(request *certificatesv1.CertificateSigningRequest) {
			created.Store(request.DeepCopy())
			block, _ := pem.Decode(request.Spec.Request)
			parsed, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			request.Status.Certificate = ca.sign(t, parsed.Subject, parsed.PublicKey, time.Now(), time.Now().Add(100*time.Hour))
		})
		member := newClientBuilder(t).WithObjects(newSecret(newKubeconfig(t, ca, from, from.Add(100*time.Hour)))).Build()
		var renewed []byte
		o := DefaultOptions()
		o.Member, o.OnRenewed = member, func(_ context.Context, kubeconfig []byte) { renewed = kubeconfig }
		r := &rotator{options: o, karmada: karmada, live: karmada, now: time.Now}

		finished := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { finished <- r.Start(ctx) }()
		<-time.After(79 * time.Hour)
		if created.Load() != nil {
			t.Fatal("a certificate was requested too early")
		}
		<-time.After(2 * time.Hour)
		cancel()
		if err := <-finished; err != nil {
			t.Fatal(err)
		}
		request := created.Load()

		secret := &corev1.Secret{}
		if err := member.Get(t.Context(), client.ObjectKeyFromObject(newSecret(nil)), secret); err != nil {
			t.Fatal(err)
		}
		identity, err := parseIdentity(secret.Data[SecretKey], "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(subject.String(), identity.chain[0].Subject.String()); diff != "" {
			t.Errorf("subject (-want +got):\n%s", diff)
		}
		if remaining := identity.chain[0].NotAfter.Sub(from); remaining < 179*time.Hour {
			t.Errorf("the certificate expires after %s", remaining)
		}
		user := identity.kubeconfig.AuthInfos["east"]
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			t.Errorf("certificate and key do not match: %v", err)
		}
		if diff := cmp.Diff(string(secret.Data[SecretKey]), string(renewed)); diff != "" {
			t.Errorf("the callback got another kubeconfig than the stored one (-want +got):\n%s", diff)
		}
		if string(secret.Data["other"]) != "kept" {
			t.Error("other keys of the Secret were removed")
		}
		if !strings.HasPrefix(request.Name, "east-") || len(request.Name) != len("east-")+5 {
			t.Errorf("the name of the request is %s", request.Name)
		}
		if got := *request.Spec.ExpirationSeconds; got != 100*3600 {
			t.Errorf("a lifetime of %d seconds was requested", got)
		}
	})
}

func TestCertificateOfTheConfiguredContextIsRotated(t *testing.T) {
	ca, now := newAuthority(t), time.Now()
	config, err := clientcmd.Load(newKubeconfig(t, ca, now.Add(-99*time.Hour), now.Add(time.Hour)))
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
	var requested []string
	karmada := newControlPlane(t, func(request *certificatesv1.CertificateSigningRequest) {
		requested = append(requested, request.Name[:len(request.Name)-len("-12345")])
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
	})
	o := DefaultOptions()
	o.Context, o.Member = "it", newClientBuilder(t).WithObjects(newSecret(encoded)).Build()
	err = (&rotator{options: o, karmada: karmada, live: karmada, now: time.Now}).rotateIfDue(t.Context())
	if diff := cmp.Diff([]string{"east"}, requested); diff != "" {
		t.Errorf("users of the requests (-want +got):\n%s\nerror %v", diff, err)
	}
}

func TestRotationErrors(t *testing.T) {
	nothing := func(*certificatesv1.CertificateSigningRequest) {}
	tests := map[string]struct {
		secret  func(t *testing.T, ca authority) *corev1.Secret
		decide  func(*certificatesv1.CertificateSigningRequest)
		wantErr string
	}{
		"no Secret": {
			secret: func(*testing.T, authority) *corev1.Secret {
				other := newSecret(nil)
				other.Name = "other"
				return other
			},
			wantErr: "Secret karmada-system/karmada-kubeconfig of the member, see --karmada-kubeconfig-namespace",
		},
		"an empty kubeconfig":   {secret: func(*testing.T, authority) *corev1.Secret { return newSecret(nil) }, wantErr: "the kubeconfig is empty"},
		"an invalid kubeconfig": {secret: func(*testing.T, authority) *corev1.Secret { return newSecret([]byte("{")) }, wantErr: "the kubeconfig is invalid"},
		"a token instead of a certificate": {
			secret: func(*testing.T, authority) *corev1.Secret {
				return newSecret([]byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {user: u}}]\nusers: [{name: u, user: {token: t}}]\n"))
			},
			wantErr: "disable certRotation",
		},
		"no approval": {decide: nothing, wantErr: "kubectl certificate approve east-"},
		"a request for manual approval": {
			decide: func(request *certificatesv1.CertificateSigningRequest) {
				request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: agent.ConditionNotApproved, Reason: "ClusterNotRegistered", Message: "there is no such cluster"}}
			},
			wantErr: "was not approved automatically: there is no such cluster; an administrator can approve it with 'kubectl certificate approve",
		},
		"a denied request": {
			decide: func(request *certificatesv1.CertificateSigningRequest) {
				request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Reason: "Policy", Message: "not you"}}
			},
			wantErr: "was not granted (Denied): Policy not you",
		},
		"a certificate for another key": {
			decide: func(request *certificatesv1.CertificateSigningRequest) {
				request.Status.Certificate = []byte("no certificate")
			},
			wantErr: "does not match the key",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca, now := newAuthority(t), time.Now()
				secret := newSecret(newKubeconfig(t, ca, now.Add(-99*time.Hour), now.Add(time.Hour)))
				if test.secret != nil {
					secret = test.secret(t, ca)
				}
				before := string(secret.Data[SecretKey])
				decide := test.decide
				if decide == nil {
					decide = nothing
				}
				karmada := newControlPlane(t, decide)
				o := DefaultOptions()
				o.Member = newClientBuilder(t).WithObjects(secret).Build()
				r := &rotator{options: o, karmada: karmada, live: karmada, now: time.Now}
				err := r.rotateIfDue(t.Context())
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want one with %q", err, test.wantErr)
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

func TestPendingRequestIsReused(t *testing.T) {
	undecided := func(*certificatesv1.CertificateSigningRequest) {}
	tests := map[string]struct {
		decide  func(*certificatesv1.CertificateSigningRequest)
		between func(t *testing.T, karmada client.Client)
		want    int
	}{
		"a pending request": {decide: undecided, want: 1},
		"a denied request": {decide: func(request *certificatesv1.CertificateSigningRequest) {
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
		}, want: 4},
		// A deleted request takes one more pass, because a pass must first find that the request
		// was deleted.
		"a deleted request": {decide: undecided, want: 2, between: func(t *testing.T, karmada client.Client) {
			if err := karmada.DeleteAllOf(t.Context(), &certificatesv1.CertificateSigningRequest{}); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca, now, count := newAuthority(t), time.Now(), 0
				karmada := newControlPlane(t, func(request *certificatesv1.CertificateSigningRequest) {
					count++
					test.decide(request)
				})
				o := DefaultOptions()
				o.Member = newClientBuilder(t).WithObjects(newSecret(newKubeconfig(t, ca, now.Add(-99*time.Hour), now.Add(time.Hour)))).Build()
				r := &rotator{options: o, karmada: karmada, live: karmada, now: time.Now}
				for range 4 {
					if err := r.rotateIfDue(t.Context()); err == nil {
						t.Fatal("a certificate was issued")
					}
					if test.between != nil {
						test.between(t, karmada)
					}
				}
				if count != test.want {
					t.Errorf("%d requests, want %d", count, test.want)
				}
			})
		})
	}
}

func TestIssuedCertificateIsStoredAfterAFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, now, count, full := newAuthority(t), time.Now(), 0, true
		karmada := newControlPlane(t, func(request *certificatesv1.CertificateSigningRequest) {
			count++
			block, _ := pem.Decode(request.Spec.Request)
			parsed, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			request.Status.Certificate = ca.sign(t, parsed.Subject, parsed.PublicKey, time.Now(), time.Now().Add(100*time.Hour))
		})
		o := DefaultOptions()
		o.Member = newClientBuilder(t).WithObjects(newSecret(newKubeconfig(t, ca, now.Add(-99*time.Hour), now.Add(time.Hour)))).
			WithInterceptorFuncs(interceptor.Funcs{Update: func(ctx context.Context, member client.WithWatch, object client.Object, options ...client.UpdateOption) error {
				if full {
					return errors.New("no space left")
				}
				return member.Update(ctx, object, options...)
			}}).Build()
		r := &rotator{options: o, karmada: karmada, live: karmada, now: time.Now}
		if err := r.rotateIfDue(t.Context()); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("error %v", err)
		}
		full = false
		if err := r.rotateIfDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if count != 1 {
			t.Errorf("%d requests, want one", count)
		}
	})
}

func TestRequestedLifetime(t *testing.T) {
	tests := map[string]struct{ lifetime, want time.Duration }{
		"the lifetime of the current certificate":          {100 * time.Hour, 100 * time.Hour},
		"the shortest lifetime that an API server accepts": {10 * time.Minute, 10 * time.Minute},
		"a lifetime that is too short":                     {5 * time.Minute, 10 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ca, from, got := newAuthority(t), time.Now().Add(-time.Hour), int32(0)
			karmada := newControlPlane(t, func(request *certificatesv1.CertificateSigningRequest) { got = *request.Spec.ExpirationSeconds })
			identity, err := parseIdentity(newKubeconfig(t, ca, from, from.Add(test.lifetime)), "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (&rotator{options: DefaultOptions(), karmada: karmada, live: karmada, now: time.Now}).createRequest(t.Context(), identity); err != nil {
				t.Fatal(err)
			}
			if got != int32(test.want.Seconds()) {
				t.Errorf("a lifetime of %d seconds was requested, want %s", got, test.want)
			}
		})
	}
}

func TestIsRenewalDue(t *testing.T) {
	now := time.Now()
	valid := func(from, until time.Duration) *x509.Certificate {
		return &x509.Certificate{NotBefore: now.Add(from), NotAfter: now.Add(until)}
	}
	tests := map[string]struct {
		chain []*x509.Certificate
		want  bool
	}{
		"a new certificate":                                      {[]*x509.Certificate{valid(-time.Hour, 9*time.Hour)}, false},
		"a fifth of the lifetime left":                           {[]*x509.Certificate{valid(-8*time.Hour, 2*time.Hour)}, true},
		"more than a fifth of the lifetime left":                 {[]*x509.Certificate{valid(-8*time.Hour, 2*time.Hour+time.Minute)}, false},
		"an expired certificate":                                 {[]*x509.Certificate{valid(-8*time.Hour, -time.Hour)}, true},
		"a chain whose common period has more than a fifth left": {[]*x509.Certificate{valid(-time.Hour, 9*time.Hour), valid(-9*time.Hour, time.Hour)}, false},
		"a chain whose common period has less than a fifth left": {[]*x509.Certificate{valid(-8*time.Hour, 9*time.Hour), valid(-9*time.Hour, time.Hour)}, true},
		"a chain without a common period":                        {[]*x509.Certificate{valid(time.Hour, 9*time.Hour), valid(-9*time.Hour, -time.Hour)}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isRenewalDue(test.chain, 0.2, now); got != test.want {
				t.Errorf("due: %t, want %t", got, test.want)
			}
		})
	}
}
