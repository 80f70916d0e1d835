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
	"karmada.io/karmada/internal/registration/clusterclient"
)

// rejectionTimeout is how long a member must reject a token before RejectsToken returns true. A
// shorter time would not suffice, because an API server that has just started rejects all tokens
// of service accounts.
const rejectionTimeout = 3 * time.Second

// RejectsToken reports whether the member rejects a token because the token was revoked, has
// expired or is malformed. It returns an error if the response of the member proves neither.
func (g Grant) RejectsToken(ctx context.Context, token []byte) (bool, error) {
	if len(bytes.TrimSpace(token)) == 0 {
		return true, nil
	}
	config := rest.AnonymousClientConfig(g.Config)
	config.Host, config.BearerToken, config.Timeout = registration.Endpoint(g.Config), string(token), clusterclient.RequestTimeout
	config.QPS = -1 // the poll interval below limits the requests
	config.GroupVersion, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	api, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return false, fmt.Errorf("creating a client with the token: %w", err)
	}
	var lastErr error
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, rejectionTimeout, true, func(context.Context) (bool, error) {
		// The poll returns an error of its own when ctx ends, so keep the error of the last
		// response.
		lastErr = api.Get().AbsPath("/api").Do(ctx).Error()
		return !apierrors.IsUnauthorized(lastErr), nil
	})
	switch {
	case apierrors.IsUnauthorized(lastErr) && ctx.Err() == nil:
		return true, nil
	case lastErr == nil || apierrors.IsForbidden(lastErr):
		// Forbidden means that the member accepted the token and denied the request.
		return false, err
	default:
		return false, fmt.Errorf("trying the token in %s (%s): %w", g.Member.Name, g.Member.Host, lastErr)
	}
}

// IsServerTrusted reports whether the CA bundle verifies the certificate that the member
// presents at the address in Config.
func (g Grant) IsServerTrusted(ctx context.Context, token, ca []byte) bool {
	return g.Config.Insecure || !registration.IsCertificateUntrusted(g.tryToken(ctx, token, ca))
}

// DeleteRejectedTokens deletes the token Secrets of the reported accounts in the member if the
// member rejects their tokens. Then IssueTokens creates new Secrets.
func (g Grant) DeleteRejectedTokens(ctx context.Context, reported ReportedAccounts) error {
	for name, wanted := range map[string]bool{ImpersonatorAccount: reported.Impersonator, AccountName(g.Cluster): reported.Credentials} {
		if !wanted {
			continue
		}
		tokenSecret := NewTokenSecret(registration.NewServiceAccount(g.Namespace, name))
		have, err := g.Member.Get(ctx, tokenSecret)
		if err != nil {
			return err
		}
		secret, ok := have.(*corev1.Secret)
		if !ok || checkTokenSecret(secret, tokenSecret) != nil || len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
			continue
		}
		rejected, err := g.RejectsToken(ctx, secret.Data[corev1.ServiceAccountTokenKey])
		if err != nil {
			return err
		}
		if !rejected {
			continue
		}
		if g.Member.DryRun {
			g.Member.Log.Printf("would delete %s in %s, whose token is rejected", g.Member.Describe(secret), g.Member.Name)
			continue
		}
		if err := g.Member.Delete(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}
