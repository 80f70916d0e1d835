package grant

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/side"
)

// refusalTimeout is how long a member must refuse a token until it counts as refused:
// an API server that has just started refuses all tokens of service accounts.
const refusalTimeout = 3 * time.Second

// Refuses reports whether the member refuses a token: it was revoked, has expired, or
// is none. An error means that this is not known.
func (g Grant) Refuses(ctx context.Context, token []byte) (bool, error) {
	if len(bytes.TrimSpace(token)) == 0 {
		return true, nil
	}
	config := rest.AnonymousClientConfig(g.Config)
	config.Host, config.BearerToken, config.Timeout = registration.Endpoint(g.Config), string(token), side.RequestTimeout
	config.QPS = -1 // the pause below is the limit
	config.GroupVersion, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	api, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return false, fmt.Errorf("making a client with the token: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, refusalTimeout, true, func(context.Context) (bool, error) {
		// Not with the context of the poll, whose end would hide the answer.
		last = api.Get().AbsPath("/api").Do(ctx).Error()
		return !apierrors.IsUnauthorized(last), nil
	})
	switch {
	case apierrors.IsUnauthorized(last) && ctx.Err() == nil:
		return true, nil
	case last == nil || apierrors.IsForbidden(last):
		// Who is forbidden something is known.
		return false, err
	default:
		return false, fmt.Errorf("trying the token in %s (%s): %w", g.Member.Name, g.Member.Host, last)
	}
}

// TrustsMember reports whether the CA certificates verify the certificate that the
// member shows at the address in Config.
func (g Grant) TrustsMember(ctx context.Context, token, ca []byte) bool {
	return g.Config.Insecure || !registration.IsUntrusted(g.tryToken(ctx, token, ca))
}

// DropRefused deletes the Secrets of the reported accounts in the member whose tokens
// the member refuses, so that Issue gets new ones.
func (g Grant) DropRefused(ctx context.Context, reported Reported) error {
	for name, wanted := range map[string]bool{Impersonator: reported.Impersonator, AccountName(g.Cluster): reported.Credentials} {
		if !wanted {
			continue
		}
		request := TokenRequest(registration.Account(g.Namespace, name))
		have, err := g.Member.Get(ctx, request)
		if err != nil {
			return err
		}
		secret, ok := have.(*corev1.Secret)
		if !ok || fitTokenRequest(secret, request) != nil || len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
			continue
		}
		refused, err := g.Refuses(ctx, secret.Data[corev1.ServiceAccountTokenKey])
		if err != nil {
			return err
		}
		if !refused {
			continue
		}
		if g.Member.DryRun {
			g.Member.Log.Printf("would delete %s in %s, whose token is refused", g.Member.Describe(secret), g.Member.Name)
			continue
		}
		if err := g.Member.Delete(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}
