package pull

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"

	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
)

// discoveryBackoff is the exponential backoff between requests for cluster-info.
var discoveryBackoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.6, Jitter: 0.3, Cap: 5 * time.Second, Steps: 30}

// discoveredEndpoint contains the control plane's address and CA bundle, which are sufficient to
// connect to the control plane before the agent has a credential.
type discoveredEndpoint struct {
	// host is the API server's URL. ca is the CA bundle that verifies the API server's certificate.
	host string
	ca   []byte
}

// discoverControlPlane returns the control plane's address and CA bundle. It reads the CA bundle from
// cluster-info, which must be signed with the token's secret. Unless the user skips this verification,
// the CA must also match one of the pins, and the control plane must return the same cluster-info over
// a connection that this CA verifies.
func (r Register) discoverControlPlane(ctx context.Context) (*discoveredEndpoint, error) {
	token, err := registration.ParseToken(r.Token)
	if err != nil {
		return nil, err
	}
	host := "https://" + r.Endpoint
	untrusted := &rest.Config{Host: host, Timeout: clusterclient.RequestTimeout, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	claimed, err := r.awaitClusterInfo(ctx, untrusted, token)
	if err != nil {
		return nil, err
	}
	ca, err := caBundle(claimed)
	if err != nil {
		return nil, r.untrustedError(err)
	}
	if len(r.CAHashes) == 0 {
		r.logf("[discovery] warning: the certificate authority of %s is not pinned, so anyone who knows the token can impersonate the control plane", r.Endpoint)
		return &discoveredEndpoint{host: host, ca: ca}, nil
	}
	pins, err := r.parsePins()
	if err != nil {
		return nil, err
	}
	if ca, err = onlyPinned(ca, pins); err != nil {
		return nil, r.untrustedError(err)
	}
	trusted := &rest.Config{Host: host, Timeout: clusterclient.RequestTimeout, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	confirmed, err := r.awaitClusterInfo(ctx, trusted, token)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(claimed, confirmed) {
		return nil, r.untrustedError(errors.New("its cluster-info differs over a verified connection: a man in the middle changed it, or it was just updated; try again"))
	}
	r.logf("[discovery] the control plane at %s matches the given hash", r.Endpoint)
	return &discoveredEndpoint{host: host, ca: ca}, nil
}

// untrustedError adds the message that the control plane cannot be trusted to err.
func (r Register) untrustedError(err error) error {
	return fmt.Errorf("the control plane at %s cannot be trusted: %w", r.Endpoint, err)
}

// awaitClusterInfo reads cluster-info until it has a signature for the token, and returns the signed
// kubeconfig. An invalid signature or an untrusted certificate ends the wait immediately.
func (r Register) awaitClusterInfo(ctx context.Context, karmada *rest.Config, token registration.Token) ([]byte, error) {
	api, err := corev1client.NewForConfig(karmada)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane (%s): %w", karmada.Host, err)
	}
	var (
		signed        []byte
		lastErr       error
		rejectedSince time.Time
	)
	waiting, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	err = discoveryBackoff.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		info, err := api.ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
		if err == nil {
			signed, err = verifyClusterInfo(info, token)
		}
		if errors.Is(err, errUnsigned) {
			err = r.verifyTokenKnown(ctx, info, err, &rejectedSince)
		}
		var permanent *permanentError
		if err == nil || errors.As(err, &permanent) || registration.IsCertificateUntrusted(err) {
			return true, err
		}
		if ctx.Err() == nil && (lastErr == nil || lastErr.Error() != err.Error()) {
			r.logf("[discovery] waiting for ConfigMap %s/%s of %s: %v", metav1.NamespacePublic, bootstrapapi.ConfigMapClusterInfo, r.Endpoint, err)
		}
		if ctx.Err() == nil || lastErr == nil {
			lastErr = err
		}
		return false, nil
	})
	switch {
	case err == nil:
		return signed, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("looking for the control plane at %s: %w", r.Endpoint, context.Cause(ctx))
	case errors.Is(err, errTokenRejected):
		return nil, r.explainTokenError(err, errTokenRejected)
	case wait.Interrupted(err):
		return nil, r.explainDiscoveryError(lastErr)
	}
	return nil, r.untrustedError(err)
}

// tokenRejectionTimeout is how long a new token is retried after the control plane has rejected it. The
// retry is necessary because an API server's cache may not contain the token yet.
const tokenRejectionTimeout = 3 * time.Second

// errTokenRejected means that the control plane, which was verified, rejects the token.
var errTokenRejected = apierrors.NewUnauthorized("the control plane does not know the token")

// verifyTokenKnown returns a permanent error if the control plane rejects the token, so that the wait
// for a signature ends early. Otherwise it returns the given error unsigned. It sends the token only to
// a control plane whose CA matches a pin.
func (r Register) verifyTokenKnown(ctx context.Context, info *corev1.ConfigMap, unsigned error, rejectedSince *time.Time) error {
	pins, err := r.parsePins()
	if err != nil || len(pins) == 0 {
		return unsigned
	}
	ca, err := caBundle([]byte(info.Data[bootstrapapi.KubeConfigKey]))
	if err != nil {
		return unsigned
	}
	if ca, err = onlyPinned(ca, pins); err != nil {
		return &permanentError{err}
	}
	_, err = r.canCreateRequests(ctx, (&discoveredEndpoint{host: "https://" + r.Endpoint, ca: ca}).newConfig(r.Token, nil, nil), "")
	switch {
	case registration.IsCertificateUntrusted(err):
		return &permanentError{err}
	case !apierrors.IsUnauthorized(err):
		*rejectedSince = time.Time{}
		return unsigned
	case rejectedSince.IsZero():
		*rejectedSince = time.Now()
	case time.Since(*rejectedSince) > tokenRejectionTimeout:
		return &permanentError{fmt.Errorf("the control plane at %s: %w", r.Endpoint, errTokenRejected)}
	}
	return unsigned
}

// canCreateRequests reports whether the client may create CertificateSigningRequests, or the given
// subresource of CertificateSigningRequests.
func (r Register) canCreateRequests(ctx context.Context, karmada *rest.Config, subresource string) (bool, error) {
	config := rest.CopyConfig(karmada)
	config.Timeout = clusterclient.RequestTimeout
	api, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		return false, fmt.Errorf("creating a client of the control plane (%s): %w", karmada.Host, err)
	}
	review, err := api.SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: subresource, Verb: "create",
			},
		}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("reviewing the access of the token in the control plane (%s): %w", karmada.Host, err)
	}
	return review.Status.Allowed, nil
}

// verifyTokenPermissions returns an error if the token lacks a permission. It is called before anything
// is created. It ignores an error in checking the permissions, because the registration reports such an
// error later.
func (r Register) verifyTokenPermissions(ctx context.Context, found *discoveredEndpoint) error {
	holder := found.newConfig(r.Token, nil, nil)
	isAllowed, err := r.canCreateRequests(ctx, holder, "")
	switch {
	case apierrors.IsUnauthorized(err):
		return r.explainTokenError(err, err)
	case err != nil:
		return nil //nolint:nilerr // see above
	case !isAllowed:
		return r.explainTokenError(fmt.Errorf("the token may not request certificates from the control plane (%s)", found.host), errMissingRight)
	}
	if isAutoApproved, err := r.canCreateRequests(ctx, holder, agent.ApproveAny); err == nil && !isAutoApproved {
		r.logf("warning: the certificate of the agent is not approved automatically for this token, so an administrator must approve it within %s; a token in group %s is approved automatically", r.Timeout, agent.BootstrapGroup)
	}
	return nil
}

var errMissingRight = apierrors.NewForbidden(certificatesv1.Resource("certificatesigningrequests"), "", nil)

// explainDiscoveryError returns the error that cluster-info did not become available in time, with
// advice.
func (r Register) explainDiscoveryError(lastErr error) error {
	err := fmt.Errorf("the control plane at %s could not be discovered within %s: %w", r.Endpoint, r.Timeout, lastErr)
	var (
		notTLS tls.RecordHeaderError
		advice string
	)
	switch {
	case errors.Is(lastErr, errUnsigned):
		advice = "The token is unknown there, has expired, or lacks the usage signing: see karmadactl token list, and create a new one with karmadactl token create."
	case apierrors.IsNotFound(lastErr), apierrors.IsForbidden(lastErr), apierrors.IsUnauthorized(lastErr):
		advice = "ConfigMap kube-public/cluster-info is missing or not readable without authentication: check that this is a Karmada control plane that accepts registrations."
	case errors.As(lastErr, &notTLS):
		advice = "The server there does not speak TLS: check host and port of the endpoint."
	default:
		advice = "Check host and port of the endpoint, that the API server of the control plane is running, and that this machine can reach it."
	}
	return fmt.Errorf("%w\n%s", err, advice)
}

// errUnsigned means that cluster-info has no signature for the token.
var errUnsigned = errors.New("it has no signature of this token")

// permanentError is an error that a retry cannot resolve.
type permanentError struct{ error }

func (p *permanentError) Unwrap() error { return p.error }

// verifyClusterInfo returns the kubeconfig in cluster-info. It returns an error unless the kubeconfig
// is signed with the token's secret.
func verifyClusterInfo(info *corev1.ConfigMap, token registration.Token) ([]byte, error) {
	kubeconfig, ok := info.Data[bootstrapapi.KubeConfigKey]
	if !ok || kubeconfig == "" {
		return nil, errors.New("it holds no kubeconfig")
	}
	signature, ok := info.Data[bootstrapapi.JWSSignatureKeyPrefix+token.ID]
	if !ok || signature == "" {
		return nil, errUnsigned
	}
	if !jws.DetachedTokenIsValid(signature, kubeconfig, token.ID, token.Secret) {
		return nil, &permanentError{fmt.Errorf("its cluster-info was not signed with the secret of token %s: the part of the token after the dot is wrong, or a man in the middle changed cluster-info", token.ID)}
	}
	return []byte(kubeconfig), nil
}

// caBundle returns the certificate authorities in a kubeconfig, which must contain exactly one cluster.
func caBundle(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of its cluster-info: %w", err)
	}
	if len(config.Clusters) != 1 {
		return nil, fmt.Errorf("the kubeconfig of its cluster-info must hold one cluster and holds %d", len(config.Clusters))
	}
	for _, cluster := range config.Clusters {
		if len(cluster.CertificateAuthorityData) == 0 {
			return nil, errors.New("the kubeconfig of its cluster-info holds no certificate authority")
		}
		return cluster.CertificateAuthorityData, nil
	}
	return nil, nil
}

// onlyPinned returns the certificate authorities that match one of the pins. Other authorities are
// rejected although cluster-info was signed with the token, because many people may know the token.
func onlyPinned(ca []byte, pins []registration.Pin) ([]byte, error) {
	certificates, err := cert.ParseCertsPEM(ca)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authorities of its cluster-info: %w", err)
	}
	var (
		trusted []byte
		found   []string
	)
	for _, certificate := range certificates {
		pin := registration.NewPin(certificate)
		found = append(found, pin.String())
		if slices.Contains(pins, pin) {
			trusted = append(trusted, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate.Raw})...)
		}
	}
	if len(trusted) == 0 {
		return nil, fmt.Errorf("its certificate authority has the hash %s, which matches none of the given hashes: check the hash with karmadactl token create --print-register-command, and check that the endpoint belongs to the control plane", strings.Join(found, ", "))
	}
	return trusted, nil
}
