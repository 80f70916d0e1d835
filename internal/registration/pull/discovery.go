package pull

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"karmada.io/karmada/internal/registration/bootstraptoken"
	"karmada.io/karmada/internal/registration/side"
)

// discoveryPace is how often cluster-info is asked for.
var discoveryPace = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.6, Jitter: 0.3, Cap: 5 * time.Second, Steps: 30}

// discovered is what is known of the control plane before there is a credential.
type discovered struct {
	// host is the URL of the API server, ca what its certificate is checked with.
	host string
	ca   []byte
}

// discover finds out what the certificate of the control plane is checked with:
// what the holder of the token's secret has signed and, unless that is to be
// skipped, has one of the pins, and is what the control plane says again once it is
// trusted.
func (r Register) discover(ctx context.Context) (*discovered, error) {
	token, err := bootstraptoken.Parse(r.Token)
	if err != nil {
		return nil, err
	}
	host := "https://" + r.Endpoint
	untrusted := &rest.Config{Host: host, Timeout: side.RequestTimeout, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	claimed, err := r.awaitSigned(ctx, untrusted, token)
	if err != nil {
		return nil, err
	}
	ca, err := authorities(claimed)
	if err != nil {
		return nil, r.notVouched(err)
	}
	if len(r.CAHashes) == 0 {
		r.logf("[discovery] warning: the certificate authority of %s is not pinned, so whoever knows the token can pose as the control plane", r.Endpoint)
		return &discovered{host: host, ca: ca}, nil
	}
	pins, err := r.pins()
	if err != nil {
		return nil, err
	}
	if ca, err = pinned(ca, pins); err != nil {
		return nil, r.notVouched(err)
	}
	trusted := &rest.Config{Host: host, Timeout: side.RequestTimeout, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	confirmed, err := r.awaitSigned(ctx, trusted, token)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(claimed, confirmed) {
		return nil, r.notVouched(errors.New("it says something else to a client that checks its certificate: somebody stands in between, or cluster-info was just changed; try again"))
	}
	r.logf("[discovery] the control plane at %s is the one whose hash was given", r.Endpoint)
	return &discovered{host: host, ca: ca}, nil
}

func (r Register) notVouched(err error) error {
	return fmt.Errorf("the control plane at %s cannot be trusted: %w", r.Endpoint, err)
}

// awaitSigned asks for cluster-info until it bears the signature of the token, and
// returns the signed kubeconfig. A wrong signature or a certificate that does not
// fit ends it at once.
func (r Register) awaitSigned(ctx context.Context, karmada *rest.Config, token bootstraptoken.Token) ([]byte, error) {
	api, err := corev1client.NewForConfig(karmada)
	if err != nil {
		return nil, fmt.Errorf("making a client of the control plane (%s): %w", karmada.Host, err)
	}
	var (
		signed  []byte
		last    error
		refused time.Time
	)
	waiting, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	err = discoveryPace.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		info, err := api.ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
		if err == nil {
			signed, err = verify(info, token)
		}
		if errors.Is(err, errUnsigned) {
			err = r.doubt(ctx, info, err, &refused)
		}
		var final *finalError
		if err == nil || errors.As(err, &final) || registration.IsUntrusted(err) {
			return true, err
		}
		if ctx.Err() == nil && (last == nil || last.Error() != err.Error()) {
			r.logf("[discovery] waiting for ConfigMap %s/%s of %s: %v", metav1.NamespacePublic, bootstrapapi.ConfigMapClusterInfo, r.Endpoint, err)
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		return false, nil
	})
	switch {
	case err == nil:
		return signed, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("looking for the control plane at %s: %w", r.Endpoint, context.Cause(ctx))
	case errors.Is(err, errRefused):
		return nil, r.explainToken(err, errRefused)
	case wait.Interrupted(err):
		return nil, r.notDiscovered(last)
	}
	return nil, r.notVouched(err)
}

// tokenPatience is how long a token may be refused that was just made: API servers
// learn of it through a cache.
const tokenPatience = 3 * time.Second

// errRefused tells that the control plane, of which the pins say that it is the right
// one, does not take the token.
var errRefused = apierrors.NewUnauthorized("the control plane does not know the token")

// doubt asks the control plane whether it knows the token with which it does not sign,
// so that nobody waits for what cannot be. It is asked only if it has one of the pins:
// the token is no business of others.
func (r Register) doubt(ctx context.Context, info *corev1.ConfigMap, unsigned error, refused *time.Time) error {
	pins, err := r.pins()
	if err != nil || len(pins) == 0 {
		return unsigned
	}
	ca, err := authorities([]byte(info.Data[bootstrapapi.KubeConfigKey]))
	if err != nil {
		return unsigned
	}
	if ca, err = pinned(ca, pins); err != nil {
		return &finalError{err}
	}
	_, err = r.may(ctx, (&discovered{host: "https://" + r.Endpoint, ca: ca}).config(r.Token, nil, nil), "")
	switch {
	case registration.IsUntrusted(err):
		return &finalError{err}
	case !apierrors.IsUnauthorized(err):
		*refused = time.Time{}
		return unsigned
	case refused.IsZero():
		*refused = time.Now()
	case time.Since(*refused) > tokenPatience:
		return &finalError{fmt.Errorf("the control plane at %s: %w", r.Endpoint, errRefused)}
	}
	return unsigned
}

// may tells whether somebody may create requests for certificates, or a subresource of
// theirs.
func (r Register) may(ctx context.Context, karmada *rest.Config, subresource string) (bool, error) {
	config := rest.CopyConfig(karmada)
	config.Timeout = side.RequestTimeout
	api, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		return false, fmt.Errorf("making a client of the control plane (%s): %w", karmada.Host, err)
	}
	answer, err := api.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: subresource, Verb: "create",
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking the control plane (%s) what the token may do: %w", karmada.Host, err)
	}
	return answer.Status.Allowed, nil
}

// mayRegister says what the token lacks, before anything is made. What cannot be found
// out shows later.
func (r Register) mayRegister(ctx context.Context, found *discovered) error {
	holder := found.config(r.Token, nil, nil)
	asks, err := r.may(ctx, holder, "")
	switch {
	case apierrors.IsUnauthorized(err):
		return r.explainToken(err, err)
	case err != nil:
		return nil //nolint:nilerr // see above
	case !asks:
		return r.explainToken(fmt.Errorf("the token may not ask the control plane (%s) for certificates", found.host), errLacking)
	}
	if approved, err := r.may(ctx, holder, agent.ApproveAny); err == nil && !approved {
		r.logf("warning: the token may not have the certificate of an agent approved, so a person has to, within %s; a token in group %s may", r.Timeout, agent.BootstrapGroup)
	}
	return nil
}

var errLacking = apierrors.NewForbidden(certificatesv1.Resource("certificatesigningrequests"), "", nil)

// notDiscovered explains why cluster-info did not come in time.
func (r Register) notDiscovered(last error) error {
	err := fmt.Errorf("the control plane at %s could not be discovered within %s: %w", r.Endpoint, r.Timeout, last)
	var (
		notTLS tls.RecordHeaderError
		advice string
	)
	switch {
	case errors.Is(last, errUnsigned):
		advice = "The token is unknown there, has expired, or lacks the usage signing: see karmadactl token list, and make a new one with karmadactl token create."
	case apierrors.IsNotFound(last), apierrors.IsForbidden(last), apierrors.IsUnauthorized(last):
		advice = "ConfigMap kube-public/cluster-info is missing or not readable for everybody: is this a Karmada control plane that clusters may register with?"
	case errors.As(last, &notTLS):
		advice = "The server there does not speak TLS: check host and port of the endpoint."
	default:
		advice = "Check host and port of the endpoint, that the API server of the control plane is running, and that this machine can reach it."
	}
	return fmt.Errorf("%w\n%s", err, advice)
}

// errUnsigned tells that cluster-info does not bear the signature of the token.
var errUnsigned = errors.New("it bears no signature of this token")

// finalError is one that another try does not help.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// verify returns the kubeconfig of cluster-info if the holder of the token's secret
// has signed it.
func verify(info *corev1.ConfigMap, token bootstraptoken.Token) ([]byte, error) {
	kubeconfig, ok := info.Data[bootstrapapi.KubeConfigKey]
	if !ok || kubeconfig == "" {
		return nil, errors.New("it holds no kubeconfig")
	}
	signature, ok := info.Data[bootstrapapi.JWSSignatureKeyPrefix+token.ID]
	if !ok || signature == "" {
		return nil, errUnsigned
	}
	if !jws.DetachedTokenIsValid(signature, kubeconfig, token.ID, token.Secret) {
		return nil, &finalError{fmt.Errorf("its cluster-info was not signed with the secret of token %s: check the token, of which the part behind the dot is wrong, or else somebody stands in between", token.ID)}
	}
	return []byte(kubeconfig), nil
}

// authorities are the certificate authorities of the one cluster of a kubeconfig.
func authorities(kubeconfig []byte) ([]byte, error) {
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

// pinned are those of the authorities that have one of the pins. Others are not
// trusted although they are signed: many may know the token.
func pinned(ca []byte, pins []bootstraptoken.Pin) ([]byte, error) {
	certificates, err := cert.ParseCertsPEM(ca)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authorities of its cluster-info: %w", err)
	}
	var (
		trusted []byte
		found   []string
	)
	for _, certificate := range certificates {
		pin := bootstraptoken.PinOf(certificate)
		found = append(found, pin.String())
		if slices.Contains(pins, pin) {
			trusted = append(trusted, encode(certificate)...)
		}
	}
	if len(trusted) == 0 {
		return nil, fmt.Errorf("its certificate authority has the hash %s, which is none of those given: check the hash with karmadactl token create --print-register-command, and that the endpoint is that of the control plane", strings.Join(found, ", "))
	}
	return trusted, nil
}

func encode(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate.Raw})
}
