package memberproxy

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/impersonation"
)

// impersonatorToken reads the token of the impersonator service account of the member.
func impersonatorToken(ctx context.Context, cluster *clusterv1alpha1.Cluster, secrets SecretGetter) (string, error) {
	ref := cluster.Spec.ImpersonatorSecretRef
	if ref == nil {
		return "", missingImpersonator(cluster)
	}
	secret, err := secrets(ctx, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return "", newUnavailableError(cluster, fmt.Errorf("reading impersonator secret %s/%s: %w: %s", ref.Namespace, ref.Name, err, tokenRemedy(cluster)))
	}
	if err != nil {
		return "", newUnavailableError(cluster, fmt.Errorf("reading impersonator secret %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	// The token may end with a newline if it was read from a file.
	token := bytes.TrimSpace(secret.Data[clusterv1alpha1.SecretTokenKey])
	if len(token) == 0 {
		return "", newUnavailableError(cluster, fmt.Errorf("impersonator secret %s/%s has no key %q: %s", ref.Namespace, ref.Name, clusterv1alpha1.SecretTokenKey, tokenRemedy(cluster)))
	}
	return string(token), nil
}

// tokenRemedy returns a description of how a user restores the token.
func tokenRemedy(cluster *clusterv1alpha1.Cluster) string {
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		return "restart its agent, which writes the token to the Secret"
	}
	return fmt.Sprintf("write the token of the service account %s of the member to key %q of the Secret", impersonation.ImpersonatorName, clusterv1alpha1.SecretTokenKey)
}

// caBundle reads the CA certificates that verify the API server of the member. nil means the CA
// certificates of the system.
func caBundle(ctx context.Context, cluster *clusterv1alpha1.Cluster, secrets SecretGetter) ([]byte, error) {
	ref := cluster.Spec.SecretRef
	if ref == nil || cluster.Spec.InsecureSkipTLSVerification {
		return nil, nil
	}
	secret, err := secrets(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, newUnavailableError(cluster, fmt.Errorf("reading secret %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	return secret.Data[clusterv1alpha1.SecretCADataKey], nil
}
