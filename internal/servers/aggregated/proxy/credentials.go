package proxy

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/impersonation"
)

// impersonatorToken reads the token with which others are impersonated in the
// member.
func impersonatorToken(ctx context.Context, cluster *clusterv1alpha1.Cluster, secrets SecretGetter) (string, error) {
	ref := cluster.Spec.ImpersonatorSecretRef
	if ref == nil {
		return "", noImpersonator(cluster)
	}
	secret, err := secrets(ctx, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return "", unavailable(cluster, fmt.Errorf("reading impersonator secret %s/%s: %w: %s", ref.Namespace, ref.Name, err, howToImpersonate(cluster)))
	}
	if err != nil {
		return "", unavailable(cluster, fmt.Errorf("reading impersonator secret %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	// One that was put there from a file ends with a new line.
	token := bytes.TrimSpace(secret.Data[clusterv1alpha1.SecretTokenKey])
	if len(token) == 0 {
		return "", unavailable(cluster, fmt.Errorf("impersonator secret %s/%s has no key %q: %s", ref.Namespace, ref.Name, clusterv1alpha1.SecretTokenKey, howToImpersonate(cluster)))
	}
	return string(token), nil
}

// howToImpersonate is how the token comes back.
func howToImpersonate(cluster *clusterv1alpha1.Cluster) string {
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		return "restart its agent, which puts the token there"
	}
	return fmt.Sprintf("put the token of the member's service account %s there, under the key %q", impersonation.Name, clusterv1alpha1.SecretTokenKey)
}

// caBundle reads the certificates that the member's API server is checked with;
// none means those of the system.
func caBundle(ctx context.Context, cluster *clusterv1alpha1.Cluster, secrets SecretGetter) ([]byte, error) {
	ref := cluster.Spec.SecretRef
	if ref == nil || cluster.Spec.InsecureSkipTLSVerification {
		return nil, nil
	}
	secret, err := secrets(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, unavailable(cluster, fmt.Errorf("reading secret %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	return secret.Data[clusterv1alpha1.SecretCADataKey], nil
}
