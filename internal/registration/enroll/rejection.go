package enroll

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

// rejectionTimeout is how long a member must reject a token before RejectsToken returns true. A single
// rejection proves nothing, because an API server that has just started rejects all service account tokens.
const rejectionTimeout = 3 * time.Second

// RejectsToken reports whether the member rejects the token because it is revoked, expired or malformed. It
// returns an error if the member's responses do not prove either result.
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
		// When ctx ends, the poll returns its own error, so keep the last response's error.
		lastErr = api.Get().AbsPath("/api").Do(ctx).Error()
		return !apierrors.IsUnauthorized(lastErr), nil
	})
	switch {
	case apierrors.IsUnauthorized(lastErr) && ctx.Err() == nil:
		return true, nil
	case lastErr == nil || apierrors.IsForbidden(lastErr):
		// Forbidden proves that the member accepted the token.
		return false, err
	default:
		return false, fmt.Errorf("trying the token in %s (%s): %w", g.Member.Name, g.Member.Host, lastErr)
	}
}

// IsServerTrusted reports whether the CA bundle verifies the member's serving certificate at the address in
// Config.
func (g Grant) IsServerTrusted(ctx context.Context, token, ca []byte) bool {
	return g.Config.Insecure || !registration.IsCertificateUntrusted(g.tryToken(ctx, token, ca))
}

// DeleteRejectedTokens deletes the reported accounts' token Secrets in the member if the member rejects
// their tokens. IssueTokens can then create new ones.
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
		if !ok || verifyTokenSecret(secret, tokenSecret) != nil || len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
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
