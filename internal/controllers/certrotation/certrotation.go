// Package certrotation answers "does the agent's certificate last?": in the last
// part of its life it asks the control plane for the next one.
//
// The certificate is in a kubeconfig in a Secret of the member, next to a key that
// never leaves the member. The Secret is written once, when certificate and key
// are both there: at any instant it holds a pair that fits. A request that nobody has
// answered is asked about again, instead of being joined by one more in each round; so
// is one whose certificate could not be stored.
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

// The Secret of the member, and its key, that hold the kubeconfig of the agent.
const (
	SecretName = "karmada-kubeconfig"
	SecretKey  = "karmada-kubeconfig"
)

// Options are what operators may tune, and where the certificate is.
type Options struct {
	// Interval is how often the certificate is looked at.
	Interval time.Duration
	// Threshold is the part of its life that is left when the next one is asked for.
	Threshold float64
	// Namespace is where the Secret is in the member.
	Namespace string
	// Context is the one of the kubeconfig that the agent uses; empty is the current.
	Context string
	// Member reads and writes the Secret, without a cache.
	Member client.Client
	// Renewed is given the new kubeconfig; nil tells nobody.
	Renewed func(kubeconfig []byte)
}

// DefaultOptions look every five minutes.
func DefaultOptions() Options {
	return Options{Interval: 5 * time.Minute, Threshold: 0.2, Namespace: clusterv1alpha1.NamespaceKarmadaSystem}
}

const (
	// poll is how often a request is looked at, patience for how long.
	poll     = time.Second
	patience = 5 * time.Minute
	// leastLifetime is what an API server demands of a request.
	leastLifetime = 10 * time.Minute
)

type rotator struct {
	options Options
	karmada client.Writer
	live    client.Reader
	now     func() time.Time
	told    string
	// asked is the request that is not settled yet, nil if there is none.
	asked *asked
}

// asked is a request for a certificate, and the key that it is for.
type asked struct {
	request *certificatesv1.CertificateSigningRequest
	key     []byte
	// instead is the certificate that is to be replaced.
	instead *x509.Certificate
}

// Add registers the controller with a manager of the control plane.
func Add(mgr manager.Manager, o Options) error {
	return mgr.Add(&rotator{options: o, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), now: time.Now})
}

// Start implements manager.Runnable.
func (r *rotator) Start(ctx context.Context) error {
	if r.options.Member == nil {
		return errors.New("rotating certificates: nothing says how to reach the member")
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		r.tell(ctx, r.check(ctx))
		timer.Reset(r.options.Interval)
	}
}

// tell tells why the certificate is not rotated, when that changes.
func (r *rotator) tell(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		r.told = ""
		return
	}
	if text := err.Error(); text != r.told {
		klog.FromContext(ctx).Error(err, "Not rotating the certificate of the agent", "controller", Name, "nextTry", r.options.Interval)
		r.told = text
	}
}

// check rotates the certificate if it is time.
func (r *rotator) check(ctx context.Context) error {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: r.options.Namespace, Name: SecretName}
	if err := r.options.Member.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("reading Secret %s of the member, see --karmada-kubeconfig-namespace: %w", key, err)
	}
	held, err := parse(secret.Data[SecretKey], r.options.Context)
	if err != nil {
		return fmt.Errorf("reading key %s of Secret %s of the member: %w", SecretKey, key, err)
	}
	if !due(held.chain, r.options.Threshold, r.now()) {
		return nil
	}
	next, err := r.renew(ctx, held)
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
	r.asked = nil
	klog.FromContext(ctx).Info("Rotated the certificate of the agent", "controller", Name, "user", held.chain[0].Subject.CommonName, "secret", key)
	if r.options.Renewed != nil {
		r.options.Renewed(next)
	}
	return nil
}

// renew returns the kubeconfig with a new key and the certificate for it.
func (r *rotator) renew(ctx context.Context, held *identity) ([]byte, error) {
	if r.asked == nil || !r.asked.instead.Equal(held.chain[0]) {
		made, err := r.ask(ctx, held)
		if err != nil {
			return nil, err
		}
		r.asked = made
	}
	pending := r.asked
	issued, err := r.await(ctx, pending.request)
	if apierrors.IsNotFound(err) || refusal(pending.request) != nil {
		r.asked = nil
	}
	if err != nil {
		return nil, err
	}
	next, err := held.with(issued, pending.key)
	if err != nil {
		r.asked = nil
	}
	return next, err
}

// ask asks the control plane for a certificate with a new key.
func (r *rotator) ask(ctx context.Context, held *identity) (*asked, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the new key: %w", err)
	}
	subject := held.chain[0].Subject
	signed, err := certutil.MakeCSR(key, &subject, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making the request for a certificate: %w", err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: held.user + "-" + utilrand.String(5)},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: signed, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
			ExpirationSeconds: csr.DurationToExpirationSeconds(max(lifetime(held.chain), leastLifetime)),
		},
	}
	if err := r.karmada.Create(ctx, request); err != nil {
		return nil, fmt.Errorf("asking the control plane for a certificate: %w", err)
	}
	return &asked{request: request, key: keyPEM, instead: held.chain[0]}, nil
}

// await waits for the certificate of a request, unless it was left to people: they may
// take longer than anybody waits.
func (r *rotator) await(ctx context.Context, request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		stored := &certificatesv1.CertificateSigningRequest{}
		// One try that fails is no reason to give up what may be signed already.
		if last = r.live.Get(ctx, client.ObjectKeyFromObject(request), stored); last != nil {
			if apierrors.IsNotFound(last) {
				return false, last
			}
			return false, nil
		}
		*request = *stored
		return len(request.Status.Certificate) > 0 || leftToPeople(request) != "", refusal(request)
	})
	switch {
	case err == nil && len(request.Status.Certificate) > 0:
		return request.Status.Certificate, nil
	case err == nil:
		return nil, fmt.Errorf("CertificateSigningRequest %s was not approved automatically: %s; a person can do so by 'kubectl certificate approve %s' in the control plane",
			request.Name, leftToPeople(request), request.Name)
	case refusal(request) != nil:
		return nil, refusal(request)
	case last != nil:
		return nil, fmt.Errorf("waiting for the certificate of CertificateSigningRequest %s: %w", request.Name, last)
	default:
		return nil, fmt.Errorf("CertificateSigningRequest %s has no certificate after %s: approve it by 'kubectl certificate approve %s' in the control plane, or see whether karmada-controller-manager (agentcsrapproving) and kube-controller-manager (csrsigning) run: %w",
			request.Name, patience, request.Name, err)
	}
}

// leftToPeople is why the control plane does not approve a request that nobody has
// approved yet, nothing if it may do so.
func leftToPeople(request *certificatesv1.CertificateSigningRequest) string {
	why := ""
	for _, condition := range request.Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateApproved:
			return ""
		case agent.NotApproved:
			why = condition.Message
		}
	}
	return why
}

// refusal is why a request gets no certificate, nil if it may get one.
func refusal(request *certificatesv1.CertificateSigningRequest) error {
	for _, condition := range request.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return fmt.Errorf("CertificateSigningRequest %s was not granted (%s): %s %s", request.Name, condition.Type, condition.Reason, condition.Message)
		}
	}
	return nil
}
