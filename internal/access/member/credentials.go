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
	// rereadPause is how long after a refusal the Secret is not read again: a member
	// that refuses everything must not make us ask for every request.
	rereadPause = time.Second
	// rereadTimeout bounds how long a refused request waits for the Secret.
	rereadTimeout = 5 * time.Second
	// maxRefusal is how much of a refusal is read, so that its connection can be used
	// again.
	maxRefusal = 4096
)

// credentials are what may change while connections stay as they are.
type credentials struct {
	// read reads a Secret from the control plane.
	read func(context.Context, types.NamespacedName) (*corev1.Secret, error)
	now  func() time.Time
	// secret is the Secret that the token is from, nil for a member that has none.
	secret atomic.Pointer[types.NamespacedName]

	// token is what is shown to the member.
	token atomic.Pointer[string]
	// refused tells that the member does not take it, missing that its Secret is gone.
	refused, missing atomic.Bool
	// known is what the Secret says of itself, nil for a member that has none.
	known atomic.Pointer[domain.Credentials]

	rereading sync.Mutex
	reread    time.Time
}

func tokenIn(secret *corev1.Secret) string {
	return string(bytes.TrimSpace(secret.Data[clusterv1alpha1.SecretTokenKey]))
}

// take shows what the Secret holds from now on.
func (c *credentials) take(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) {
	token := tokenIn(secret)
	if before := c.token.Swap(&token); before == nil || *before != token {
		c.refused.Store(false)
	}
	c.missing.Store(false)
	ref := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
	c.secret.Store(&ref)
	c.known.Store(&domain.Credentials{
		Secret:   ref.String(),
		Validity: domain.ValidityOf(secret.Data, cluster.Spec.InsecureSkipTLSVerification),
	})
}

// renew returns another token than the one that was refused, if there is one.
func (c *credentials) renew(ctx context.Context, refused string) (token string, ok bool) {
	c.rereading.Lock()
	defer c.rereading.Unlock()
	if now := c.token.Load(); now != nil && *now != refused {
		return *now, true
	}
	c.refused.Store(true)
	now, ref := c.now(), c.secret.Load()
	if ref == nil || !c.reread.IsZero() && now.Sub(c.reread) < rereadPause {
		return "", false
	}
	c.reread = now
	ctx, cancel := context.WithTimeout(ctx, rereadTimeout)
	defer cancel()
	secret, err := c.read(ctx, *ref)
	if err != nil || tokenIn(secret) == "" || tokenIn(secret) == refused {
		return "", false
	}
	// Whether more than the token has changed is seen when the member is next asked
	// for.
	token = tokenIn(secret)
	c.token.Store(&token)
	return token, true
}

// authorized sends the current token. When the member refuses it and there is a
// newer one by now, the request is sent again with that: a token that was replaced
// costs nobody an error.
func authorized(next http.RoundTripper, shown *credentials) http.RoundTripper {
	return roundTripper{next: next, trip: func(request *http.Request) (*http.Response, error) {
		token := shown.token.Load()
		response, err := next.RoundTrip(bearing(request, *token))
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusUnauthorized {
			shown.refused.Store(false)
			return response, nil
		}
		newer, ok := shown.renew(request.Context(), *token)
		if !ok {
			return response, nil
		}
		again, ok := replay(bearing(request, newer))
		if !ok {
			return response, nil
		}
		_, _ = io.CopyN(io.Discard, response.Body, maxRefusal)
		_ = response.Body.Close()
		response, err = next.RoundTrip(again)
		if err == nil {
			shown.refused.Store(response.StatusCode == http.StatusUnauthorized)
		}
		return response, err
	}}
}

func bearing(request *http.Request, token string) *http.Request {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+token)
	return request
}

// replay makes a request that was sent fit to be sent again, if its body can be
// had again.
func replay(request *http.Request) (*http.Request, bool) {
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

// Credentials are what the member is reached with; known is false for one that is
// reached without its Secret.
func (m *Member) Credentials() (shown domain.Credentials, known bool) {
	if m.shown == nil {
		return domain.Credentials{}, false
	}
	current := m.shown.known.Load()
	if current == nil {
		return domain.Credentials{}, false
	}
	shown = *current
	shown.Refused, shown.Missing = m.shown.refused.Load(), m.shown.missing.Load()
	return shown, true
}
