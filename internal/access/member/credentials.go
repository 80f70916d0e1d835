package member

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
)

const (
	// rereadDelay is the minimum time between two reads of a Secret after a rejected token. Without
	// it, a member that rejects all requests would cause a read for every request.
	rereadDelay = time.Second
	// rereadTimeout is the maximum time that a rejected request waits until the Secret is read.
	rereadTimeout = 5 * time.Second
	// maxRejectionBody is the number of bytes that are read from the body of a rejection, so that
	// its connection can be reused.
	maxRejectionBody = 4096
)

// credentials are the credentials of a member, which can change while its connections stay
// open.
type credentials struct {
	// readSecret reads a Secret from the control plane.
	readSecret func(context.Context, types.NamespacedName) (*corev1.Secret, error)
	now        func() time.Time
	// secretKey is the Secret that contains the token. It is nil for a member without a Secret.
	secretKey atomic.Pointer[types.NamespacedName]

	// token is the bearer token that is sent to the member.
	token atomic.Pointer[string]
	// isRejected is true if the member rejects the token. isSecretMissing is true if the Secret of
	// the member does not exist.
	isRejected, isSecretMissing atomic.Bool
	// details describes the Secret and its validity. It is nil for a member without a Secret.
	details atomic.Pointer[domain.Credentials]

	rereadMu   sync.Mutex
	lastReread time.Time
}

func tokenFrom(secret *corev1.Secret) string {
	return string(bytes.TrimSpace(secret.Data[clusterv1alpha1.SecretTokenKey]))
}

// use makes later requests use the credentials in the given Secret.
func (c *credentials) use(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) {
	token := tokenFrom(secret)
	if previous := c.token.Swap(&token); previous == nil || *previous != token {
		c.isRejected.Store(false)
	}
	c.isSecretMissing.Store(false)
	ref := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
	c.secretKey.Store(&ref)
	c.details.Store(&domain.Credentials{
		Secret:   ref.String(),
		Validity: domain.ValidityOf(secret.Data, cluster.Spec.InsecureSkipTLSVerification),
	})
}

// readNewToken returns a token that differs from the rejected token, if there is one.
func (c *credentials) readNewToken(ctx context.Context, refused string) (token string, ok bool) {
	c.rereadMu.Lock()
	defer c.rereadMu.Unlock()
	if now := c.token.Load(); now != nil && *now != refused {
		return *now, true
	}
	c.isRejected.Store(true)
	now, ref := c.now(), c.secretKey.Load()
	if ref == nil || !c.lastReread.IsZero() && now.Sub(c.lastReread) < rereadDelay {
		return "", false
	}
	c.lastReread = now
	ctx, cancel := context.WithTimeout(ctx, rereadTimeout)
	defer cancel()
	secret, err := c.readSecret(ctx, *ref)
	if err != nil || tokenFrom(secret) == "" || tokenFrom(secret) == refused {
		return "", false
	}
	// Only the token is updated here. If other fields of the Secret changed too, the next Get of
	// the member notices the change.
	token = tokenFrom(secret)
	c.token.Store(&token)
	return token, true
}

// authenticated sends the current token with each request. If the member rejects the token and
// there is a newer one, it sends the request again, so that a rotated token causes no error for the
// caller.
func authenticated(next http.RoundTripper, creds *credentials) http.RoundTripper {
	return roundTripper{next: next, roundTrip: func(request *http.Request) (*http.Response, error) {
		token := creds.token.Load()
		response, err := next.RoundTrip(withBearerToken(request, *token))
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusUnauthorized {
			creds.isRejected.Store(false)
			return response, nil
		}
		newer, ok := creds.readNewToken(request.Context(), *token)
		if !ok {
			return response, nil
		}
		again, ok := prepareResend(withBearerToken(request, newer))
		if !ok {
			return response, nil
		}
		_, _ = io.CopyN(io.Discard, response.Body, maxRejectionBody)
		_ = response.Body.Close()
		response, err = next.RoundTrip(again)
		if err == nil {
			creds.isRejected.Store(response.StatusCode == http.StatusUnauthorized)
		}
		return response, err
	}}
}

func withBearerToken(request *http.Request, token string) *http.Request {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+token)
	return request
}

// prepareResend returns a copy of a sent request that can be sent again. It returns false if the
// body cannot be read again.
func prepareResend(request *http.Request) (*http.Request, bool) {
	if request.Body == nil || request.Body == http.NoBody {
		return request, true
	}
	if request.GetBody == nil {
		return nil, false
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, false
	}
	request.Body = body
	return request, true
}

// Credentials returns the description of the credentials of the member. known is false for a member
// whose connection needs no Secret.
func (m *Member) Credentials() (creds domain.Credentials, known bool) {
	if m.credentials == nil {
		return domain.Credentials{}, false
	}
	details := m.credentials.details.Load()
	if details == nil {
		return domain.Credentials{}, false
	}
	creds = *details
	creds.Rejected, creds.SecretMissing = m.credentials.isRejected.Load(), m.credentials.isSecretMissing.Load()
	return creds, true
}
