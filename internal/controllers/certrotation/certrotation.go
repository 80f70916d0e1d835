// Package certrotation renews an agent's certificate. In the last part of the lifetime of the
// certificate it requests a new certificate from the control plane.
//
// The certificate is in a kubeconfig in a Secret of the member. The private key never leaves the
// member. The Secret always contains a matching certificate and key, because it is written only
// once, when both exist. If a request is still pending, or if its certificate could not be stored,
// the next check uses the same request again.
package certrotation

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// Name is the name of the controller in logs.
const Name = "cert-rotation-controller"

// The names of the Secret in the member, and of the key in this Secret, that contain the kubeconfig
// of the agent.
const (
	SecretName = "karmada-kubeconfig"
	SecretKey  = "karmada-kubeconfig"
)

// Options configure the controller and locate the certificate.
type Options struct {
	// Interval is the interval between two checks of the certificate.
	Interval time.Duration
	// Threshold is the remaining part of the lifetime, between 0 and 1, at which a new certificate
	// is requested.
	Threshold float64
	// Namespace is the namespace of the Secret in the member.
	Namespace string
	// Context is the kubeconfig context that the agent uses. Empty means the current context.
	Context string
	// Member reads and writes the Secret without a cache.
	Member client.Client
	// OnRenewed is called with the new kubeconfig. It may be nil.
	OnRenewed func(ctx context.Context, kubeconfig []byte)
}

// DefaultOptions returns options with a check every five minutes.
func DefaultOptions() Options {
	return Options{Interval: 5 * time.Minute, Threshold: 0.2, Namespace: clusterv1alpha1.NamespaceKarmadaSystem}
}

const (
	// requestPollInterval is the interval at which a pending request is read. requestTimeout is the
	// maximum time to wait for its certificate.
	requestPollInterval = time.Second
	requestTimeout      = 5 * time.Minute
	// minLifetime is the shortest lifetime that an API server accepts in a request.
	minLifetime = 10 * time.Minute
)

type rotator struct {
	options   Options
	karmada   client.Writer
	live      client.Reader
	now       func() time.Time
	lastError string
	// pending is the unfinished request, or nil if there is none.
	pending *pendingRequest
}

// pendingRequest is a certificate signing request and its private key.
type pendingRequest struct {
	request *certificatesv1.CertificateSigningRequest
	key     []byte
	// replaced is the certificate that the new certificate replaces.
	replaced *x509.Certificate
}

// Add registers the controller with a manager of the control plane.
func Add(mgr manager.Manager, o Options) error {
	return mgr.Add(&rotator{options: o, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), now: time.Now})
}

// Start implements manager.Runnable.
func (r *rotator) Start(ctx context.Context) error {
	if r.options.Member == nil {
		return errors.New("rotating certificates: no client for the member")
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		r.logFailure(ctx, r.rotateIfDue(ctx))
		timer.Reset(r.options.Interval)
	}
}

// logFailure logs why the certificate cannot be rotated. It logs only if the reason changed.
func (r *rotator) logFailure(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		r.lastError = ""
		return
	}
	if text := err.Error(); text != r.lastError {
		klog.FromContext(ctx).Error(err, "Cannot rotate the certificate of the agent", "controller", Name, "nextTry", r.options.Interval)
		r.lastError = text
	}
}

// rotateIfDue rotates the certificate if its renewal is due.
func (r *rotator) rotateIfDue(ctx context.Context) error {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: r.options.Namespace, Name: SecretName}
	if err := r.options.Member.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("reading Secret %s of the member, see --karmada-kubeconfig-namespace: %w", key, err)
	}
	identity, err := parseIdentity(secret.Data[SecretKey], r.options.Context)
	if err != nil {
		return fmt.Errorf("reading key %s of Secret %s of the member: %w", SecretKey, key, err)
	}
	if !isRenewalDue(identity.chain, r.options.Threshold, r.now()) {
		return nil
	}
	next, err := r.renewKubeconfig(ctx, identity)
	if err != nil {
		return err
	}
	if bytes.Equal(next, secret.Data[SecretKey]) {
		return nil
	}
	secret.Data[SecretKey] = next
	if err := r.options.Member.Update(ctx, secret); err != nil {
		return fmt.Errorf("storing the new certificate in Secret %s of the member: %w", key, err)
	}
	r.pending = nil
	klog.FromContext(ctx).Info("Rotated the certificate of the agent", "controller", Name, "user", identity.chain[0].Subject.CommonName,
		"secret", key)
	if r.options.OnRenewed != nil {
		r.options.OnRenewed(ctx, next)
	}
	return nil
}

// renewKubeconfig returns the kubeconfig with a new key and a new certificate for this key.
func (r *rotator) renewKubeconfig(ctx context.Context, identity *clientIdentity) ([]byte, error) {
	if r.pending == nil || !r.pending.replaced.Equal(identity.chain[0]) {
		created, err := r.createRequest(ctx, identity)
		if err != nil {
			return nil, err
		}
		r.pending = created
	}
	pending := r.pending
	certificate, err := r.awaitCertificate(ctx, pending.request)
	if apierrors.IsNotFound(err) || requestError(pending.request) != nil {
		r.pending = nil
	}
	if err != nil {
		return nil, err
	}
	next, err := identity.withCertificate(certificate, pending.key)
	if err != nil {
		r.pending = nil
	}
	return next, err
}

// createRequest creates a certificate signing request with a new key.
func (r *rotator) createRequest(ctx context.Context, identity *clientIdentity) (*pendingRequest, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the new key: %w", err)
	}
	subject := identity.chain[0].Subject
	csrPEM, err := certutil.MakeCSR(key, &subject, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the request for a certificate: %w", err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: identity.user + "-" + utilrand.String(5)},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: csrPEM, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
				certificatesv1.UsageClientAuth},
			ExpirationSeconds: csr.DurationToExpirationSeconds(max(lifetime(identity.chain), minLifetime)),
		},
	}
	if err := r.karmada.Create(ctx, request); err != nil {
		return nil, fmt.Errorf("requesting a certificate from the control plane: %w", err)
	}
	return &pendingRequest{request: request, key: keyPEM, replaced: identity.chain[0]}, nil
}

// awaitCertificate waits until the certificate of a request is issued. It returns early if the
// request needs a manual approval, which may take long.
func (r *rotator) awaitCertificate(ctx context.Context, request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, requestPollInterval, requestTimeout, true, func(ctx context.Context) (bool, error) {
		stored := &certificatesv1.CertificateSigningRequest{}
		// A failed read does not end the wait, because the certificate may already be issued.
		if lastErr = r.live.Get(ctx, client.ObjectKeyFromObject(request), stored); lastErr != nil {
			if apierrors.IsNotFound(lastErr) {
				return false, lastErr
			}
			return false, nil
		}
		*request = *stored
		return len(request.Status.Certificate) > 0 || manualApprovalReason(request) != "", requestError(request)
	})
	switch {
	case err == nil && len(request.Status.Certificate) > 0:
		return request.Status.Certificate, nil
	case err == nil:
		return nil, fmt.Errorf("CertificateSigningRequest %s was not approved automatically: %s; an administrator can approve it with 'kubectl certificate approve %s' in the control plane",
			request.Name, manualApprovalReason(request), request.Name)
	case requestError(request) != nil:
		return nil, requestError(request)
	case lastErr != nil:
		return nil, fmt.Errorf("waiting for the certificate of CertificateSigningRequest %s: %w", request.Name, lastErr)
	default:
		return nil, fmt.Errorf("CertificateSigningRequest %s has no certificate after %s: approve it with 'kubectl certificate approve %s' in the control plane, or check that karmada-controller-manager (agentcsrapproving) and kube-controller-manager (csrsigning) run: %w",
			request.Name, requestTimeout, request.Name, err)
	}
}

// manualApprovalReason returns why the control plane does not approve a request automatically. It
// returns an empty string if an automatic approval is possible, or if the request is approved.
func manualApprovalReason(request *certificatesv1.CertificateSigningRequest) string {
	reason := ""
	for _, condition := range request.Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateApproved:
			return ""
		case agent.ConditionNotApproved:
			reason = condition.Message
		}
	}
	return reason
}

// requestError returns an error if a request will get no certificate, because the request was
// denied or failed.
func requestError(request *certificatesv1.CertificateSigningRequest) error {
	for _, condition := range request.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return fmt.Errorf("CertificateSigningRequest %s was not granted (%s): %s %s", request.Name, condition.Type, condition.Reason,
				condition.Message)
		}
	}
	return nil
}
