package pull

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration/clusterclient"
)

// If a certificate is approved while the registration fails, the rollback needs the certificate.
// Otherwise the cluster's name cannot be used again.
func TestRollbackObtainsACertificateThatWasApprovedLate(t *testing.T) {
	key, encoded, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "agent"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	approved := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}
	declined := certificatesv1.CertificateSigningRequestCondition{Type: agent.ConditionNotApproved, Status: corev1.ConditionTrue, Message: "too late"}
	tests := map[string]struct {
		// statuses are the request's statuses in the order in which they are read.
		statuses  []certificatesv1.CertificateSigningRequestStatus
		wantReads int
		want      bool
	}{
		"issued after the approval": {
			statuses: []certificatesv1.CertificateSigningRequestStatus{
				{}, {Conditions: []certificatesv1.CertificateSigningRequestCondition{approved}},
				{Conditions: []certificatesv1.CertificateSigningRequestCondition{approved}, Certificate: certificate},
			},
			wantReads: 3, want: true,
		},
		"declined": {
			statuses:  []certificatesv1.CertificateSigningRequestStatus{{Conditions: []certificatesv1.CertificateSigningRequestCondition{declined}}},
			wantReads: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := certificatesv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			reads := 0
			api := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
					object.(*certificatesv1.CertificateSigningRequest).Status = test.statuses[min(reads, len(test.statuses)-1)]
					reads++
					return nil
				},
			}).Build()
			identity := &agentIdentity{
				endpoint: &discoveredEndpoint{host: "https://karmada.example.com"}, holder: &clusterclient.Client{API: api}, key: encoded,
				request: &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "member-1", UID: "1"}},
			}
			if err := identity.awaitLateCertificate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := identity.karmada != nil; got != test.want {
				t.Errorf("has a client with the certificate: %t, want %t", got, test.want)
			}
			if reads != test.wantReads {
				t.Errorf("%d reads, want %d", reads, test.wantReads)
			}
		})
	}
}
